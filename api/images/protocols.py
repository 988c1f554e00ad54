"""The two image protocols of a service: pictures from a prompt, and from a picture."""

from __future__ import annotations

from api.images.adapter import load_edit, load_generation
from api.images.renderer import ImageRenderer
from api.protocols import Protocol
from api.settings import Settings
from workers.contract.pictures import PictureStore

GENERATION, EDIT = "image_generation", "image_edit"
PROGRESS = ("steps_done", "steps_expected")


def image_protocols(settings: Settings, pictures: PictureStore) -> tuple[Protocol, ...]:
    """The protocols, which render with a service's own files and address."""
    render = ImageRenderer(settings, pictures).render
    return (
        Protocol(name=GENERATION, load=load_generation, render=render, progress=PROGRESS),
        Protocol(name=EDIT, load=load_edit, render=render, progress=PROGRESS),
    )
