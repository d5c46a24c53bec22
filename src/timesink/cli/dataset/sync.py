"""`timesink dataset sync`: bring images here from a remote place, only what differs."""

from contextlib import ExitStack
from pathlib import Path

import click

from timesink.cli import _options

NAMES_SHOWN = 5


@click.command()
@click.argument("remote")
@click.argument("local", type=click.Path(path_type=Path))
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="CLASS",
    help="Bring only this class. Repeatable; all classes when left out.",
)
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Private key for sftp; the agent's and the default keys when left out.",
)
@click.option(
    "--known-hosts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Host keys to trust for sftp; ~/.ssh/known_hosts and the system's when left out.",
)
@_options.as_json
def sync(
    remote: str,
    local: Path,
    classes: tuple[str, ...],
    key: Path | None,
    known_hosts: Path | None,
    as_json: bool,
) -> None:
    """Bring images from REMOTE to the folder LOCAL.

    REMOTE is sftp://user@host/path, http(s)://host/path with index pages, s3://bucket/path
    (credentials and AWS_ENDPOINT_URL from the environment) or a folder. It holds
    train/<class> and val/<class>, or <class>. Only images come, and only those that differ
    from what is here; each file is whole or absent. After a cut, the same command goes on.

    \b
    Examples:
      timesink dataset sync sftp://user@host/imagenet data --class n01440764
      timesink dataset sync https://example.org/flowers data/flowers
      timesink dataset sync s3://bucket/flowers data/flowers --json
    """
    from timesink.cli._console import err, next_command, print_json
    from timesink.cli._progress import Advance, progress
    from timesink.datasets.sync import sync as bring

    advances: list[Advance] = []
    with ExitStack() as stack:
        summary = bring(
            remote,
            local,
            classes=classes,
            key=key,
            known_hosts=known_hosts,
            on_total=lambda files: advances.append(
                stack.enter_context(progress(err, "sync", files, "files"))
            ),
            advance=lambda files: advances[0](files),
        )
    if as_json:
        print_json(
            {
                "remote": summary.remote,
                "local": summary.local,
                "files": summary.files,
                "bytes": summary.bytes,
                "unchanged": summary.unchanged,
                "skipped": summary.skipped,
                "refused": [_printable(path) for path in summary.refused],
                "failed": [
                    {"path": _printable(path), "reason": reason} for path, reason in summary.failed
                ],
                "seconds": round(summary.seconds, 3),
                "mb_per_s": round(summary.mb_per_s, 3),
            }
        )
    else:
        click.echo(summary.sentence)
    # Names from elsewhere are shown escaped: they could hold what a terminal obeys.
    for path in summary.refused[:NAMES_SHOWN]:
        click.echo(f"timesink: refused, it would leave {local}: {path!a}", err=True)
    for path, reason in summary.failed[:NAMES_SHOWN]:
        click.echo(f"timesink: failed: {path!a}: {reason}", err=True)
    summary.check()
    if not as_json:
        next_command(f"timesink dataset info {local}")


def _printable(name: str) -> str:
    """A name on a disk need not be UTF-8; JSON is."""
    return name.encode(errors="backslashreplace").decode()
