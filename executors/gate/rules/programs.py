"""Programs that run what they are given: by their options, by their arguments, or as a whole language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "AWKS",
    "FOLLOWED",
    "GIT_OPTIONS",
    "INTERPRETERS",
    "RUNNERS",
    "RUNNING_OPTIONS",
    "SHELLS",
    "WRAPPERS",
    "Wrapper",
    "names",
    "program",
]


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """A program that runs the command that its arguments are."""

    valued: frozenset[str] = frozenset()
    """Options that take the word after them."""
    operands: int = 0
    """Words that come before the command."""
    assigns: bool = False
    """`NAME=value` may come before the command."""


def _taking(options: str = "", *, operands: int = 0, assigns: bool = False) -> Wrapper:
    return Wrapper(valued=frozenset(options.split()), operands=operands, assigns=assigns)


WRAPPERS: Final = {
    "sudo": _taking("-u -g -h -p -C -r -t -T -U -D -R --user --group --chdir", assigns=True),
    "doas": _taking("-u -C"),
    "pkexec": _taking("--user"),
    "runuser": _taking("-u -g -G"),
    "env": _taking("-u -C -a --unset --chdir --argv0", assigns=True),
    "nice": _taking("-n --adjustment"),
    "ionice": _taking("-c -n -p --class --classdata"),
    "timeout": _taking("-s -k --signal --kill-after", operands=1),
    "stdbuf": _taking("-i -o -e --input --output --error"),
    "chroot": _taking("--userspec --groups", operands=1),
    "flock": _taking("-w -E --timeout --wait", operands=1),
    "taskset": _taking(operands=1),
    "chrt": _taking(operands=1),
    "exec": _taking("-a"),
    "strace": _taking("-e -o -p -s -u -E -P"),
    "ltrace": _taking("-e -o -p -s -u"),
    "xargs": _taking(
        "-I -n -P -d -a -E -L -s --max-args --max-procs --delimiter --arg-file --replace --max-lines"
    ),
    "parallel": _taking("-j -a -I -n -S -N --jobs --arg-file"),
    "watch": _taking("-n --interval"),
    "unshare": _taking("--map-user --map-group"),
    "nsenter": _taking("-t --target"),
    "setpriv": _taking("--reuid --regid --groups"),
    "systemd-run": _taking("-p -u --unit --property"),
    **{
        name: _taking()
        for name in names(
            "nohup setsid time command builtin busybox toybox eatmydata fakeroot proot firejail bwrap "
            "caffeinate unbuffer rlwrap xvfb-run dbus-run-session coproc catchsegv valgrind"
        )
    },
}
"""The command stands among their words."""

SHELLS: Final = names("sh bash zsh dash ash ksh mksh fish csh tcsh rbash su script runuser flock")
"""What follows `-c` is a script."""

AWKS: Final = frozenset({"awk", "gawk", "mawk", "nawk"})

INTERPRETERS: Final = names(
    "sh bash zsh dash ash ksh mksh fish csh tcsh rbash python pypy ipython node nodejs deno bun ruby irb "
    "perl raku php lua luajit julia groovy scala kotlin jshell osascript powershell pwsh cmd tclsh "
    "wish expect erl elixir iex ghci swift r rscript octave guile racket sbcl java gdb lldb ed ex vi vim "
    "nvim emacs nano sqlite3 psql mysql redis-cli screen tmux eval source . trap ssh at batch m4"
)
"""Programs that do whatever their input says; versions at the end of a name do not count."""

RUNNERS: Final = names(
    "npx npm pnpm pnpx yarn bunx corepack uv uvx pipx pip poetry pdm hatch rye tox nox conda mamba "
    "cargo go dotnet gradle mvn make just task rake bundle gem composer docker podman kubectl nix"
)
"""Programs that fetch or build other programs and run them."""

FOLLOWED: Final = names("run exec x dlx -- tool run-script create init")
"""Words of runners after which the program is yet to come."""

RUNNING_OPTIONS: Final = {
    "tar": "-I -F --to-command --checkpoint-action --use-compress-program --rsh-command --info-script "
    "--new-volume-script",
    "bsdtar": "--use-compress-program",
    "rsync": "-e --rsh --rsync-path",
    "scp": "-o -S",
    "sftp": "-o -S -D",
    "ssh": "-o",
    "sort": "--compress-program",
    "split": "--filter",
    "zip": "-TT --unzip-command",
    "man": "-P -H --pager --html",
    "vim": "-c --cmd -S",
    "vi": "-c",
    "tcpdump": "-z",
    "nmap": "--script",
    "curl": "-K --config",
    "wget": "--use-askpass --config -e --execute",
    "make": "-f --file --makefile --eval",
    "ctags": "--options",
    "rg": "--pre",
    "gcc": "-wrapper -B",
    "openssl": "-engine",
}
"""Options whose value is run, or says what is run."""


GIT_OPTIONS: Final = {
    "": "-c --config-env --exec-path",
    "rebase": "-x --exec",
    "difftool": "-x --extcmd",
    "grep": "-O --open-files-in-pager",
    "clone": "-u -c --upload-pack --config --template",
    "fetch": "--upload-pack",
    "pull": "--upload-pack",
    "ls-remote": "--upload-pack --exec",
    "push": "--receive-pack --exec",
    "archive": "--exec",
    "send-email": "--sendmail-cmd --to-cmd --cc-cmd",
}
"""The same for git: before its subcommand ("") and after it."""


def program(word: str) -> str:
    """Return what a program is called: without its folder and its version."""
    name = word.rsplit("/", 1)[-1].lower().removesuffix(".exe")
    return name.rstrip("0123456789.") or name
