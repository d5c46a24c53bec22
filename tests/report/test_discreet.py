"""What a page shows names no home directory, no password, no signed address."""

import pytest

from timesink.report.discreet import discreet, discreet_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/data/me/runs/a", "~/runs/a"),
        ("/data/me", "~"),
        ("/data/metal/runs", "/data/metal/runs"),
        ("not found: /data/me/x.jpg, skipped", "not found: ~/x.jpg, skipped"),
        ("/home/anna/photos", "~/photos"),
        ("/Users/anna/photos", "~/photos"),
        ("/root/x and '/home/b'", "~/x and '~'"),
        ("/srv/home/anna", "/srv/home/anna"),
        ("sftp://me:secret@host/images", "sftp://…@host/images"),
        ("https://host/a.zip?X-Signature=abc&e=1 failed", "https://host/a.zip?… failed"),
        ("callback Slow, train.py:9", "callback Slow, train.py:9"),
    ],
)
def test_strings(text, shown):
    assert discreet_text(text, "/data/me") == shown


def test_values_are_made_discreet_however_deep_and_nothing_else_changes():
    value = {"a": [{"path": "/data/me/x"}, 3, None], "api_key": "abc", "/data/me/k": 1.5}
    assert discreet(value, "/data/me") == {
        "a": [{"path": "~/x"}, 3, None],
        "api_key": "…",
        "~/k": 1.5,
    }


def test_a_home_that_is_the_root_hides_nothing():
    assert discreet_text("/srv/x", "/") == "/srv/x"
