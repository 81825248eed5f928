"""Names of models: the stored form, and the errors for invalid names."""

import pytest

from keryx.core.values.model_name import PROVIDERS, check_model_name, nearest_names
from keryx.errors import InvalidValue


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("openai:gpt-5", "openai:gpt-5"),
        (" openai : gpt-5 ", "openai:gpt-5"),
        ("ollama:qwen3:8b", "ollama:qwen3:8b"),
        ("openrouter:some/model", "openrouter:some/model"),
        ("offline", "offline:smollm2"),
    ],
)
def test_a_name_is_stored_without_spaces_around_its_parts(name: str, stored: str) -> None:
    assert check_model_name(name) == stored


@pytest.mark.parametrize("name", ["", "gpt-5", ":", "openai:", " : gpt-5"])
def test_an_invalid_name_is_refused_with_the_correct_form(name: str) -> None:
    with pytest.raises(InvalidValue, match="names no model; write it as provider:name, such as openai:gpt-5"):
        check_model_name(name)


def test_an_unknown_provider_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(InvalidValue, match=r"There is no provider 'antropic'\. Did you mean anthropic"):
        check_model_name("antropic:claude")


def test_without_a_near_name_the_best_known_are_suggested() -> None:
    assert nearest_names("zzzzzzzz", PROVIDERS) == "Did you mean openai or anthropic or google?"
    assert nearest_names("small", []) == "Look up its name at the provider."
