"""The run's ledger is closed: whatever the transitions, the accounts sum to the wall time."""

from hypothesis import given
from hypothesis import strategies as st

from timesink.ledger.run_ledger import ACCOUNTS, close_run

times = st.integers(min_value=-(10**12), max_value=10**13)
transitions = st.lists(st.tuples(times, st.sampled_from(ACCOUNTS)), max_size=30)


@given(transitions, st.integers(0, 10**13), times, st.booleans())
def test_the_accounts_sum_to_the_wall_time_and_none_is_negative(changes, end_ns, last, ended_well):
    charged = close_run(changes, end_ns=end_ns, last_evidence_ns=last, ended_well=ended_well)
    assert sum(charged.values()) == end_ns
    assert min(charged.values()) >= 0
    assert set(charged) == set(ACCOUNTS)


@given(transitions, st.integers(0, 10**13), st.randoms())
def test_the_order_of_the_lines_does_not_matter(changes, end_ns, random):
    changes = list({at: (at, account) for at, account in changes}.values())
    shuffled = random.sample(changes, len(changes))
    books = [
        close_run(each, end_ns=end_ns, last_evidence_ns=end_ns, ended_well=True)
        for each in (changes, shuffled)
    ]
    assert books[0] == books[1]


def test_time_before_the_first_account_is_startup_and_after_the_last_is_the_last():
    charged = close_run(
        [(10, "tracing"), (30, "steps"), (90, "teardown")],
        end_ns=100,
        last_evidence_ns=95,
        ended_well=True,
    )
    assert {a: ns for a, ns in charged.items() if ns} == {
        "startup": 10,
        "tracing": 20,
        "steps": 60,
        "teardown": 10,
    }


def test_after_the_last_sign_of_life_of_a_killed_process_nothing_is_claimed():
    charged = close_run([(10, "steps")], end_ns=100, last_evidence_ns=70, ended_well=False)
    assert charged["steps"] == 60
    assert charged["unattributed"] == 30
