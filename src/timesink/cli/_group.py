"""A click group whose help lists its commands in named sections."""

from typing import Any

import click


class SectionedGroup(click.Group):
    """Commands under headings that say what a person wants to do."""

    def __init__(self, *args: Any, sections: dict[str, list[click.Command]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        for commands in sections.values():
            for command in commands:
                self.add_command(command)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the commands in the order of their sections."""
        return [str(command.name) for commands in self.sections.values() for command in commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one definition list a section; a group's own commands stand under it."""
        rows = {
            heading: [row for command in commands for row in _rows(command)]
            for heading, commands in self.sections.items()
        }
        width = max((len(name) for section in rows.values() for name, _ in section), default=0)
        for heading, section in rows.items():
            if section:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(width), text) for name, text in section])


def _rows(command: click.Command) -> list[tuple[str, str]]:
    if isinstance(command, click.Group):
        return [
            (f"{command.name} {name}", sub.get_short_help_str(60))
            for name, sub in command.commands.items()
        ]
    return [(str(command.name), command.get_short_help_str(60))]
