"""The invariants of inbox items, turns and calls."""

from typing import Final

from keryx.core.values.invariant import Checks

CHECKS: Final[Checks] = {
    "turn_invariants.claimed_without_turn": ("I1", "inbox item {} is claimed by a turn that is not live"),
    "turn_invariants.wrong_fate": ("I1", "inbox item {} has a fate that does not fit its state"),
    "turn_invariants.answered_without_turn": (
        "I1",
        "inbox item {} is answered, but no finished turn claimed it",
    ),
    "turn_invariants.not_one_answer": ("I1", "turn {} does not answer exactly one of its items"),
    "turn_invariants.failed_silently": ("I1", "inbox item {} failed without a reply"),
    "turn_invariants.waiting_in_bin": ("I1", "inbox item {} waits in the bin"),
    "turn_invariants.out_of_order": ("I3", "turn {} replied after the reply to a later message"),
    "turn_invariants.falling_epochs": ("I5", "turn {} has an epoch out of order"),
    "turn_invariants.two_turns": ("I5", "{} turns are live at once"),
    "turn_invariants.idle_leases": ("I5", "{} holds the lease and runs no turn"),
    "turn_invariants.open_calls": ("I6", "call {} will never get a result"),
    "turn_invariants.wrong_results": ("I6", "the {} in the messages and in the steps differ"),
    "turn_invariants.wrong_steps": ("I7", "call {} started too often, or is in a state it cannot be in"),
    "turn_invariants.shared_keys": ("I7", "idempotency key {} is used for two calls"),
}
