"""Which steps of a process are traced: `[profile]` and the steps to do → ranges of iterations."""

from timesink.experiment import ProfileSection

WARM_UP_STEPS = 20


def plan_windows(profile: ProfileSection, first: int, last: int) -> tuple[range, ...]:
    """Give the iterations that are traced, a range for each file, of those from `first` to `last`.

    The first step is never traced: it compiles. `window`: after `start` steps come `windows`
    windows of `steps` steps, each followed by an untraced stretch as long. Where the steps do not
    suffice, the warm-up (unless it was given), then the stretches, then their number shrink until
    they do; fewer than three steps are not traced. `every`: all steps after `start`, cut into
    files.
    """
    count = last - first + 1
    match profile.mode:
        case "window" if count >= 3:
            return _alternate(profile, first, count)
        case "every":
            begin = first + max(profile.start or 0, 1)
            return tuple(
                range(at, min(at + profile.steps, last + 1))
                for at in range(begin, last + 1, profile.steps)
            )
        case _:
            return ()


def _alternate(profile: ProfileSection, first: int, count: int) -> tuple[range, ...]:
    steps = profile.steps
    # After the first step, a window and the stretch behind it need two.
    windows = max(min(profile.windows, (count - 1) // 2), 1)
    if profile.start is None:
        # In a short run the steps after the first are cut evenly: untraced, traced, …, untraced.
        even = 1 + (count - 1) // (2 * windows + 1)
        before = min(WARM_UP_STEPS, max(even, count - 2 * windows * steps))
    else:
        before = min(max(profile.start, 1), count - 1)
    left = count - before
    windows = max(min(windows, left // 2), 1)
    steps = max(min(steps, left // (2 * windows)), 1)
    begins = (first + before + 2 * steps * k for k in range(windows))
    return tuple(range(begin, begin + steps) for begin in begins)
