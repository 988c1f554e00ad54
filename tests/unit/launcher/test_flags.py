from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from workers.contract.settings import Settings, option_fields
from workers.launcher.errors import BadFlag
from workers.launcher.flags import HELP, is_asked, parse_arguments
from workers.launcher.option_values import allowed_for, flag_of, is_repeatable, kind_of

OPTIONS = option_fields()
NUMBERS = [option for option in OPTIONS if kind_of(option) is int]
SWITCHES = [option for option in OPTIONS if kind_of(option) is bool]
CHOICES = [option for option in OPTIONS if option.metadata["choices"]]
TEXTS = [option for option in OPTIONS if kind_of(option) is str]


def names(options: list[Any]) -> list[str]:
    return [option.name for option in options]


def refusal_of(*argv: str) -> str:
    with pytest.raises(BadFlag) as refusal:
        parse_arguments(argv)
    message = str(refusal.value)
    assert len(message.splitlines()) == 1
    return message


def good_value(option: Any) -> str:
    if kind_of(option) is bool:
        return "true"
    if option.metadata["choices"]:
        return str(option.metadata["choices"][-1])
    if kind_of(option) is int:
        return str(option.metadata["low"] or 1)
    if option.name.endswith("_url") and option.name != "redis_url":
        return "http://127.0.0.1:6000"
    return "0,a" if option.name == "layers" else "/some/where"


def test_no_arguments_give_the_defaults() -> None:
    settings = parse_arguments([])

    assert settings == Settings()


@pytest.mark.parametrize(
    "option", [each for each in OPTIONS if each.name != "config"], ids=lambda each: each.name
)
def test_every_flag_means_the_same_in_both_forms(option: Any) -> None:
    flag, value = flag_of(option), good_value(option)

    apart = parse_arguments([flag, value])
    joined = parse_arguments([f"{flag}={value}"])

    assert apart == joined
    found = getattr(apart, option.name)
    assert str(found[0] if is_repeatable(option) else found).lower() == value


@pytest.mark.parametrize("option", NUMBERS, ids=names(NUMBERS))
@pytest.mark.parametrize("value", ["", "abc", "1.5", "0x10", "1e3", "\u0661", " 8", "9" * 30])
def test_a_number_is_refused_with_its_range_when_it_is_none(option: Any, value: str) -> None:
    message = refusal_of(f"{flag_of(option)}={value}")

    assert message.startswith(flag_of(option) + ":")
    assert value[:9] in message
    assert allowed_for(option) in message


@pytest.mark.parametrize("option", NUMBERS, ids=names(NUMBERS))
def test_a_number_below_its_range_is_refused(option: Any) -> None:
    value = str(option.metadata["low"] - 1)

    message = refusal_of(flag_of(option), value)

    assert f"{flag_of(option)}: {value} " in message
    assert message.endswith(f"; allowed: {allowed_for(option)}")
    assert str(option.metadata["low"]) in allowed_for(option)


@pytest.mark.parametrize(
    "option", [each for each in NUMBERS if each.metadata["high"]], ids=lambda each: each.name
)
def test_a_number_above_its_range_is_refused(option: Any) -> None:
    value = str(option.metadata["high"] + 1)

    message = refusal_of(flag_of(option), value)

    assert value in message
    assert f"to {option.metadata['high']}" in message


@pytest.mark.parametrize("option", SWITCHES, ids=names(SWITCHES))
@pytest.mark.parametrize("value", ["", "yes", "True", "1", "false "])
def test_a_switch_is_refused_unless_it_is_true_or_false(option: Any, value: str) -> None:
    message = refusal_of(f"{flag_of(option)}={value}")

    assert message == f'{flag_of(option)}: "{value}" is not allowed; allowed: true, false'


@pytest.mark.parametrize("option", CHOICES, ids=names(CHOICES))
@pytest.mark.parametrize("value", ["", "nothing", "Original"])
def test_a_choice_is_refused_with_all_the_choices(option: Any, value: str) -> None:
    message = refusal_of(f"{flag_of(option)}={value}")

    assert message.startswith(f'{flag_of(option)}: "{value}"')
    assert ", ".join(option.metadata["choices"]) in message


@pytest.mark.parametrize("option", TEXTS, ids=names(TEXTS))
def test_an_empty_text_is_refused(option: Any) -> None:
    message = refusal_of(f"{flag_of(option)}=")

    assert message.startswith(f'{flag_of(option)}: ""')


@pytest.mark.parametrize("option", OPTIONS, ids=names(OPTIONS))
@pytest.mark.parametrize("rest", [[], ["--slots=1"]])
def test_a_flag_without_a_value_is_refused(option: Any, rest: list[str]) -> None:
    message = refusal_of(flag_of(option), *rest)

    assert message == f"{flag_of(option)}: has no value; allowed: {allowed_for(option)}"


def test_an_unknown_flag_is_refused_with_the_nearest_one() -> None:
    message = refusal_of("--listen-prot=80")

    assert message.startswith("--listen-prot: is not a flag; did you mean --listen-port?")


@pytest.mark.parametrize("option", OPTIONS, ids=names(OPTIONS))
def test_the_nearest_flag_is_meant_when_two_letters_are_swapped(option: Any) -> None:
    flag = flag_of(option)
    slip = f"{flag[:3]}{flag[4]}{flag[3]}{flag[5:]}"

    message = refusal_of(f"{slip}=1")

    assert f"; did you mean {flag}?" in message


@pytest.mark.parametrize("flag", ["--nope", "--foo", "--seed", "--nothing", "--x", "-x"])
def test_no_flag_is_suggested_for_a_word_that_has_only_letters_in_common(flag: str) -> None:
    message = refusal_of(f"{flag}=1")

    assert message == f"{flag}: is not a flag (--help lists them)"


@pytest.mark.parametrize(("value", "is_allowed"), [("-1", True), ("1", True), ("0", False)])
def test_a_group_has_some_weights_or_there_are_no_groups(value: str, is_allowed: bool) -> None:
    if is_allowed:
        assert parse_arguments([f"--group-size={value}"]).group_size == int(value)
    else:
        expected = "--group-size: 0 is not allowed; allowed: -1 (none), a whole number from 1 up"
        assert refusal_of(f"--group-size={value}") == expected


@pytest.mark.parametrize(
    "url", ["127.0.0.1:6000", "ftp://a", "http://", "http://a b", "http://a:99999", "http://a?b=c"]
)
def test_a_url_is_refused_unless_it_is_one_of_http_with_a_host(url: str) -> None:
    message = refusal_of("--node-url", url)

    expected = "is not allowed; allowed: an http:// or https:// URL with a host"
    assert message == f'--node-url: "{url}" {expected}'


def test_a_key_in_a_url_that_is_refused_is_not_shown() -> None:
    message = refusal_of("--node-url", "http://secret@a:99999")

    assert "secret" not in message


def test_an_abbreviated_flag_is_refused() -> None:
    message = refusal_of("--listen-po=80")

    assert "--listen-po: is not a flag" in message


@pytest.mark.parametrize("word", ["serve", "-x", "", "--", "a\nb"])
def test_a_word_that_is_no_flag_is_refused(word: str) -> None:
    message = refusal_of(word)

    assert "is not a flag" in message


def test_a_flag_that_takes_no_value_is_refused_with_one() -> None:
    message = refusal_of("--version=1")

    assert message == "--version: takes no value"


def test_a_value_of_many_lines_is_shown_on_one() -> None:
    message = refusal_of("--precision=a\nb")

    assert '"a\\nb"' in message


def test_a_long_value_is_cut_in_the_message() -> None:
    message = refusal_of("--precision", "x" * 5000)

    assert len(message) < 500


def test_a_repeatable_flag_collects_its_values_in_order() -> None:
    settings = parse_arguments(["--api-key=b", "--api-key", "a"])

    assert settings.api_key == ("b", "a")


def test_a_key_with_a_blank_is_refused_without_being_shown() -> None:
    message = refusal_of("--api-key=my secret")

    expected = "--api-key: is not allowed; allowed: visible ASCII characters, no spaces"
    assert message == expected


def test_the_last_one_wins_when_a_flag_is_given_twice() -> None:
    settings = parse_arguments(["--slots=1", "--slots=2"])

    assert settings.slots == 2


def test_a_negative_number_may_stand_apart_from_its_flag() -> None:
    settings = parse_arguments(["--group-size", "-1"])

    assert settings.group_size == -1


def test_relative_paths_start_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()

    settings = parse_arguments(["--data-dir=here", "--model=mine", "--cache-dir", "./c"])

    assert settings.data_dir == str(tmp_path / "here")
    assert settings.model == str(tmp_path / "mine")
    assert settings.cache_dir == str(tmp_path / "c")


def test_the_name_of_a_model_on_the_hub_is_left_as_it_is() -> None:
    settings = parse_arguments(["--model=EleutherAI/gpt-neo-125M"])

    assert settings.model == "EleutherAI/gpt-neo-125M"


def test_flags_win_over_the_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "neodim.toml"
    file.write_text('slots = 3\nprecision = "float32"\napi-key = ["a", "b"]\n')

    settings = parse_arguments(["--slots=5", f"--config={file}", "--api-key=c"])

    assert (settings.slots, settings.precision, settings.api_key) == (5, "float32", ("c",))


@pytest.mark.parametrize("argv", [["--help"], ["--slots", "x", "-h"]])
def test_help_is_asked_for_wherever_it_stands(argv: list[str]) -> None:
    asked = is_asked(HELP, argv)

    assert asked
