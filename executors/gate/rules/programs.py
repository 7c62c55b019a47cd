"""Programs that run what they are given: by their options, by their arguments, or as a whole language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "AWKS",
    "EDITORS",
    "FOLLOWED",
    "GIT_OPTIONS",
    "INTERPRETERS",
    "RUNNERS",
    "RUNNING_OPTIONS",
    "SEPARATE",
    "SHELLS",
    "SWITCHERS",
    "UNBOUNDED",
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
    flags: frozenset[str] = frozenset()
    """Letters of options that take nothing."""
    operands: int = 0
    """Words that come before the command."""
    assigns: bool = False
    """`NAME=value` may come before the command."""
    optional: bool = False
    """One more word may come before the command."""


def _taking(
    options: str = "",
    flags: str = "",
    *,
    operands: int = 0,
    assigns: bool = False,
    optional: bool = False,
) -> Wrapper:
    return Wrapper(
        valued=frozenset(options.split()),
        flags=frozenset(flags),
        operands=operands,
        assigns=assigns,
        optional=optional,
    )


WRAPPERS: Final = {
    "sudo": _taking(
        "-u -g -h -p -C -r -t -T -U -D -R --user --group --chdir --chroot --host --prompt --role --type "
        "--close-from --command-timeout --other-user",
        "nEHSkKisbABPve",
        assigns=True,
    ),
    "doas": _taking("-u -C", "ns"),
    "pkexec": _taking("--user"),
    "runuser": _taking("-u -g -G"),
    "env": _taking("-u -C -a -S --unset --chdir --argv0 --split-string", "i0v", assigns=True),
    "nice": _taking("-n --adjustment"),
    "ionice": _taking("-c -n -p --class --classdata", "t"),
    "timeout": _taking("-s -k --signal --kill-after", "v", operands=1),
    "stdbuf": _taking("-i -o -e --input --output --error"),
    "chroot": _taking("--userspec --groups", operands=1),
    "flock": _taking("-w -E --timeout --wait", "nsxuoFeb", operands=1),
    "taskset": _taking("", "ap", operands=1),
    "chrt": _taking("-T -P -D", "abfior", operands=1),
    "exec": _taking("-a", "cl"),
    "command": _taking("", "pvV"),
    "time": _taking("-f -o --format --output", "apvqV"),
    "setsid": _taking("", "cfw"),
    "strace": _taking("-e -o -p -s -u -E -P -a -b -I -O -S -X", "cCdDfFhiknqrtTvVwxyYzZ"),
    "ltrace": _taking("-e -o -p -s -u -a -A -D -F -l -n -w -x", "bcCfhiLrStTV"),
    "xargs": _taking(
        "-I -n -P -d -a -E -L -s --max-args --max-procs --delimiter --arg-file --replace --max-lines "
        "--max-chars --process-slot-var",
        "0rtpxo",
    ),
    "parallel": _taking("-j -a -I -n -S -N --jobs --arg-file", "0kqtvX"),
    "watch": _taking("-n --interval", "dtbecgxpw"),
    "unshare": _taking("--map-user --map-group -R -S -G -w", "mUipnuCTfrc"),
    "nsenter": _taking("-t --target -S -G"),
    "setpriv": _taking("--reuid --regid --groups"),
    "systemd-run": _taking("-p -u -t -H -M -E --unit --property --slice --uid --gid --setenv"),
    "setarch": _taking("", "BFILRSTXZ3v", optional=True),
    "prlimit": _taking("-p --pid"),
    "ssh-agent": _taking("-a -t -E -P -O", "cDdks"),
    "sshpass": _taking("-f -d -p -P", "ev"),
    "entr": _taking("", "acdnprsxz"),
    "numactl": _taking("-i -m -N -C -p -l --interleave --membind --cpunodebind --physcpubind"),
    "cpulimit": _taking("-l -p -e -P --limit --pid --exe", "bfmqvz"),
    "cgexec": _taking("-g"),
    "runcon": _taking("-u -r -t -l", "c", optional=True),
    "faketime": _taking("-f", operands=1),
    "logsave": _taking("", "asv", operands=1),
    "hyperfine": _taking("-w -m -M -r -s -p -c -n -N -S --warmup --runs --prepare --shell"),
    "perf": _taking(operands=1),
    "ld.so": _taking("--library-path --preload --audit --inhibit-rpath --argv0"),
    "gosu": _taking(operands=1),
    "su-exec": _taking(operands=1),
    **{
        name: _taking()
        for name in names(
            "nohup builtin busybox toybox eatmydata fakeroot proot firejail bwrap caffeinate unbuffer rlwrap "
            "xvfb-run dbus-run-session dbus-launch coproc catchsegv valgrind linux32 linux64 i386 i486 i586 "
            "i686 x86_64 chronic torsocks torify proxychains proxychains4 tini dumb-init run0 ifne nocache "
            "systemd-inhibit fakechroot gdbserver rr heaptrack uftrace daemonize setlock softlimit chpst "
            "setuidgid envdir multitime xinit startx openvt"
        )
    },
}
"""The command stands among their words."""

SHELLS: Final = names(
    "sh bash zsh dash ash ksh mksh pdksh oksh lksh bosh posh yash hush fish csh tcsh rbash rzsh osh ysh "
    "elvish nu xonsh rc es su sg script runuser flock"
)
"""What follows `-c` is a script."""

SWITCHERS: Final = names("su sg script runuser flock")
"""Those of them whose `-c` takes the word that comes next."""

AWKS: Final = frozenset({"awk", "gawk", "mawk", "nawk", "goawk", "original-awk", "bwk"})

EDITORS: Final = names(
    "vi vim nvim ex view vimdiff gvim gview rview rvim evim vimx vim.basic vim.tiny vim.nox vim.gtk"
)
"""Editors that are told by their options what to run."""

INTERPRETERS: Final = (
    names(
        "python pypy ipython node nodejs deno bun ruby irb tsx ts-node qjs coffee "
        "perl raku php lua luajit julia groovy scala kotlin jshell osascript powershell pwsh cmd tclsh "
        "wish expect erl elixir iex ghci swift r rscript octave guile racket sbcl java gdb lldb ed "
        "emacs nano sqlite3 psql mysql redis-cli screen tmux eval source . trap ssh at batch m4 su"
    )
    | EDITORS
    | (SHELLS - SWITCHERS)
)
"""Programs that do whatever their input says; versions at the end of a name do not count."""

UNBOUNDED: Final = names(
    "su sg script xterm uxterm rxvt urxvt lxterm konsole gnome-terminal xfce4-terminal kitty alacritty foot "
    "wezterm terminator tilix nc ncat netcat socat start-stop-daemon capsh autossh mosh ansible vagrant "
    "emacsclient mg joe jed kak helix hx micro pico lftp ftp alias bind fc complete compgen "
    "enable hash mapfile readarray declare typeset local export let read crontab"
)
"""Other programs that run what their arguments say, and builtins that change what a name means."""

RUNNERS: Final = names(
    "npx npm pnpm pnpx yarn bunx corepack uv uvx pipx pip poetry pdm hatch rye tox nox conda mamba "
    "cargo go dotnet gradle mvn make just task rake bundle gem composer docker podman kubectl nix"
)
"""Programs that fetch or build other programs and run them."""

FOLLOWED: Final = names("run exec x dlx -- tool run-script create init")
"""Words of runners after which the program is yet to come."""

_EDITING: Final = "-c --cmd -S -s -u -U -i -W + --startuptime"
_COMPILING: Final = (
    "-wrapper -B -fplugin -fpass-plugin -specs --specs -Xclang -fuse-ld --ld-path -Xlinker -Wl, @ "
    "-load --config -iplugindir"
)
_TARRING: Final = (
    "-I -F -T --files-from --to-command --checkpoint-action --use-compress-program --rsh-command "
    "--rmt-command --info-script --new-volume-script"
)
_FETCHING: Final = (
    "--script-shell --shell --node-options --userconfig --globalconfig --git --editor --viewer --browser "
    "--call --prefix"
)
_GOING: Final = (
    "-exec --exec -toolexec --toolexec -vettool --vettool -ldflags --ldflags -gccgoflags "
    "--gccgoflags -overlay --overlay"
)

RUNNING_OPTIONS: Final = {
    "tar": _TARRING,
    "bsdtar": _TARRING,
    "rsync": "-e --rsh --rsync-path --config",
    "scp": "-o -S -F -D",
    "sftp": "-o -S -D -F",
    "ssh": "-o -F -I -S",
    "sort": "--compress-program",
    "split": "--filter",
    "install": "--strip-program",
    "zip": "-TT --unzip-command",
    "man": "-P -H -C --pager --html --config-file",
    "less": "+ -k --lesskey-file --lesskey-src --lesskey-content",
    "more": "+",
    "most": "+",
    "bat": "--pager",
    "batcat": "--pager",
    "ag": "--pager",
    "tcpdump": "-z",
    "nmap": "--script",
    "curl": "-K --config --engine",
    "wget": "--use-askpass --config -e --execute",
    "make": "-f -E --file --makefile --eval",
    "cmake": "-E -P -C --toolchain",
    "ctags": "--options",
    "rg": "--pre --hostname-bin",
    "openssl": "-engine -provider --engine --provider",
    "ld": "-plugin --plugin @",
    "hg": "--config --configfile -e --ssh --remotecmd -c --command --tool --debugger --program",
    "svn": "--diff-cmd --diff3-cmd --editor-cmd --config-option --config-dir",
    "cvs": "-e -d",
    "go": _GOING,
    "cargo": "--config",
    "rustc": "-C --codegen -Z @",
    "ip": "-b -batch --batch",
    "apt": "-o -c --option --config-file",
    "apt-get": "-o -c --option --config-file",
    "dpkg": "--pre-invoke --post-invoke",
    "exiftool": "-if -config -p",
    "mail": "-S",
    "mutt": "-e -F",
    "ssh-keygen": "-D -w",
    "nc": "-e -c --exec --sh-exec --lua-exec",
    "netcat": "-e -c --exec --sh-exec --lua-exec",
    "ncat": "-e -c --exec --sh-exec --lua-exec",
    **dict.fromkeys(EDITORS, _EDITING),
    **dict.fromkeys(names("gcc g++ cc c++ clang clang++ gfortran cpp"), _COMPILING),
    **dict.fromkeys(names("npm pnpm yarn"), _FETCHING),
}
"""Options whose value is run, or says what is run; letters count wherever they are bundled."""

SEPARATE: Final = names(
    "gcc g++ cc c++ clang clang++ gfortran cpp ld go openssl cmake ip exiftool zip rustc"
)
"""Programs that do not take several letters behind one dash."""

GIT_OPTIONS: Final = {
    "": "-c --config-env --exec-path",
    "rebase": "-x --exec",
    "difftool": "-x --extcmd",
    "grep": "-O --open-files-in-pager",
    "clone": "-u -c --upload-pack --config --template",
    "init": "--template",
    "fetch": "--upload-pack",
    "fetch-pack": "--upload-pack --exec",
    "pull": "--upload-pack",
    "ls-remote": "--upload-pack --exec",
    "push": "--receive-pack --exec",
    "send-pack": "--receive-pack --exec",
    "archive": "--exec",
    **dict.fromkeys(
        names("log show diff diff-files diff-index diff-tree whatchanged stash range-diff reflog"),
        "--output --ext-diff",
    ),
    "format-patch": "--output --ext-diff",
    "checkout-index": "--prefix",
    "shell": "-c",
    "daemon": "--access-hook --enable",
    "instaweb": "-b -d --httpd --browser",
    "send-email": "--sendmail-cmd --smtp-server --to-cmd --cc-cmd --header-cmd --identity",
    "filter-branch": "--env-filter --tree-filter --index-filter --parent-filter --msg-filter "
    "--commit-filter --tag-name-filter --setup",
}
"""The same for git: before its subcommand ("") and after it."""


_GNU: Final = names(
    "awk chgrp chmod chown chroot cp date dd env find install kill ln ls make mv nice nohup rm rmdir sed "
    "shred sort split stdbuf tar tee time timeout truncate unlink xargs"
)


def program(word: str) -> str:
    """Return what a program is called: without its folder, its version, and the g of GNU's."""
    name = word.rsplit("/", 1)[-1].lower().removesuffix(".exe")
    if name.startswith(("ld-linux", "ld-musl", "ld64.so")):
        return "ld.so"
    name = name.rstrip("0123456789.-") or name if name not in WRAPPERS else name
    return name[1:] if name[:1] == "g" and name[1:] in _GNU and name not in AWKS else name
