"""Memory of the machine's GPUs around a generation, as the Neodim protocol reports it."""

from __future__ import annotations

import torch

from workers.contract.text_result import DeviceMemory


class MemoryWatch:
    """Samples of reserved, allocated and free memory of every CUDA device; idle without CUDA."""

    def __init__(self) -> None:
        self._devices = range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
        self._samples: list[list[tuple[int, int, int]]] = [[] for _ in self._devices]
        self.sample()

    def sample(self) -> None:
        """Note how things are now; only the first, last, lowest and highest values are kept."""
        for device, samples in zip(self._devices, self._samples, strict=True):
            free, _ = torch.cuda.mem_get_info(device)
            reserved = torch.cuda.memory_reserved(device)
            samples.append((reserved, torch.cuda.memory_allocated(device), free))
            if len(samples) > 4:
                columns = list(zip(*samples, strict=True))
                lowest = (min(columns[0]), min(columns[1]), min(columns[2]))
                highest = (max(columns[0]), max(columns[1]), max(columns[2]))
                samples[:] = [samples[0], lowest, highest, samples[-1]]

    def report(self) -> tuple[DeviceMemory, ...]:
        """One record a device, those that were not used as well."""
        return tuple(map(self._device_report, self._devices, self._samples))

    @staticmethod
    def _device_report(device: int, samples: list[tuple[int, int, int]]) -> DeviceMemory:
        reserved, allocated, free = (
            (values[0], values[-1], min(values), max(values))
            for values in zip(*samples, strict=True)
        )
        properties = torch.cuda.get_device_properties(device)
        return DeviceMemory(
            name=properties.name,
            total=properties.total_memory,
            reserved=reserved,
            allocated=allocated,
            free=free,
        )
