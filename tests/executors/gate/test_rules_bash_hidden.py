"""What commands run besides themselves: seen through to be classified, and never let through by an entry.

An entry that names only a program lets through what is proven to run nothing else. Each row is a way round
that; beside them stand everyday commands that have to pass.
"""

import time

import pytest

from executors.errors import ConfigError
from tests.executors.gate.bashes import asked, denied, rule, tier


@pytest.mark.parametrize(
    "cmd",
    [
        "tar cIf 'touch y' x.tar .",
        "tar -cIf 'touch y' x.tar .",
        "tar xFf 'touch y' x.tar",
        "tar --use 'touch y' -cf x.tar .",
        "tar --rmt-command='touch y' -cf h:x .",
        "tar cf '-oProxyCommand=touch y:x' .",
        "tar -T list -cf x.tar",
        "gtar cIf 'touch y' x.tar .",
        "rsync -ave 'touch y' a b:c",
        "curl -sK x",
        "curl -#K x",
        "wget -qe use_askpass=y x",
        "scp -rS y a b:c",
        "man -aP 'touch y' x",
        "less '+!touch y' x",
        "less '++!touch y' x",
        "sort --comp=y x",
        "fd -Hx touch y",
        "fd -tfx touch y",
        "fd --exec=touch y",
        "hg --config alias.x='!touch y' x",
        "hg --conf=alias.x='!touch y' x",
        "svn diff --diff-cmd y",
        "gcc -fplugin=y.so x.c",
        "gcc-12 -fplugin=y.so x.c",
        "gcc @x",
        "cmake -E env touch y",
        "cmake -P y",
        "ip netns exec x touch y",
        "ip net ex x touch y",
        "ip -b x",
        "find . -exec xargs + touch y ;",
        "printf -v 'a[$(touch y)]' x",
    ],
)
def test_options_that_run_something_are_seen_however_they_are_written(cmd: str) -> None:
    assert denied(rule(allow=[cmd.partition(" ")[0]]), asked(cmd)).startswith("bash.allow")


@pytest.mark.parametrize(
    ("entry", "rest"),
    [
        ("go test", "-exec y ./..."),
        ("go test", "-toolexec=y ./..."),
        ("cargo test", "--config x"),
        ("npm test", "--script-shell=y"),
        ("vim x", "'+!touch y'"),
        ("view x", "-c '!touch y'"),
        ("socat TCP:a:1", "EXEC:y"),
        ("make test", "-sf y"),
    ],
)
def test_what_follows_a_longer_entry_is_seen_too(entry: str, rest: str) -> None:
    judge = rule(allow=[entry])
    assert denied(judge, asked(entry)) == ""
    assert denied(judge, asked(f"{entry} {rest}")) == "bash.allow"


@pytest.mark.parametrize(
    "script",
    [
        "1etouch y",
        "1!e touch y",
        "1 ! e touch y",
        "sxaxtouch yxe",
        "s/a/b/;etouch y",
        "s/a/b/ge",
        "s/a/b/2Ie",
        "s,a,b,e",
        "s a b e",
        "s/[/]/e;s/x/]/e",
        "s/a/b/w y",
        "/x/etouch y",
        "\\xaxetouch y",
        "1,/x/e",
        "$!{e",
        "1~2e",
        "/a/,+2e",
        "y/a/b/;e",
        ":a;e",
        "b;e",
        "ta\ne touch y",
        "1w y",
        "1r y",
        "W y",
        "R y",
        "a\\\ntext\ne",
        "a text\ne touch y",
        "i\\",
        "s/a/\\\nb/",
        "p e",
        "é",
        "{p;e}",
        "#x\ne",
        "s/a",
        "s",
    ],
)
@pytest.mark.parametrize("line", ["sed", "sed -n", "sed -e p -e", "gsed -Ene", "sed -i -e"])
def test_a_script_of_sed_that_may_run_or_write_is_denied(line: str, script: str) -> None:
    argv = [*line.split(), script, "x"]
    assert denied(rule(allow=["sed", "gsed"]), asked(argv=argv)) == "bash.allow"


@pytest.mark.parametrize(
    "argv",
    [
        ["sed", "-f", "x"],
        ["sed", "-nf", "x"],
        ["sed", "--fil=x", "y"],
        ["sed", "--exp=1e", "x"],
        ["sed", "--exp", "1e", "x"],
        ["sed", "1e", "-e", "p"],
        ["sed", "p", "x", "-e", "1e"],
        ["sed", "-l5e", "1e"],
        ["sed", "--", "1e"],
        ["sed", "-i.e", "1e"],
        ["sed", "-es/a/b/e", "x"],
    ],
)
def test_a_script_of_sed_is_found_wherever_it_stands(argv: list[str]) -> None:
    assert denied(rule(allow=["sed"]), asked(argv=argv)) == "bash.allow"


@pytest.mark.parametrize(
    "argv",
    [
        ["awk", 'BEGIN { f = "sys" "tem"; @f("touch y") }'],
        ["awk", '{print > "y"}'],
        ["awk", '{printf "x" >> "y"}'],
        ["awk", '{print | "sh"}'],
        ["awk", '{print ||| "sh"}'],
        ["awk", "-nf", "x"],
        ["awk", "{print}", "-f", "x"],
        ["awk", "--inc=x", "{print}"],
        ["gawk", "-Dx", "{print}"],
        ["original-awk", 'BEGIN{system("y")}'],
        ["busybox", "awk", 'BEGIN{system("y")}'],
    ],
)
def test_a_program_of_awk_that_may_run_or_write_is_denied(argv: list[str]) -> None:
    judge = rule(allow=["awk", "gawk", "original-awk", "busybox awk"])
    assert denied(judge, asked(argv=argv)) == "bash.allow"


@pytest.mark.parametrize(
    "rest",
    [
        "x",
        "config alias.x '!touch y'",
        "config --global alias.x '!touch y'",
        "config set core.pager y",
        "config --add core.fsmonitor y",
        "config core.hooksPath y",
        "config core.sshCommand y",
        "config diff.x.command y",
        "config mergetool.x.cmd y",
        "config filter.x.clean y",
        "config credential.helper '!y'",
        "config include.path y",
        "config --rename-section user alias",
        "config user.name alias --rename-section",
        "config -e",
        "config edit",
        "config -f y user.name z",
        "--odd log",
        "-P x",
        "-C d x",
        "--namespace n x",
        "rebase --ex 'touch y'",
        "rebase --e 'touch y'",
        "rebase -ix 'touch y'",
        "grep -nO'touch y' x",
        "clone -qu y a b",
        "init --templ=y",
        "push --repo=ext::y",
        "fetch-pack --exec=y h",
        "send-pack --exec=y h",
        "shell -c y",
        "daemon --access-hook=y",
        "instaweb --httpd=y",
        "send-email --smtp-server=/y x",
        "submodule -q foreach 'touch y'",
        "bisect run touch y",
        "bisect view gitk",
        "difftool -x y",
        "filter-branch --tree-filter y",
        "merge-index y -a",
        "hook run x",
        "for-each-repo --config=x y",
        "credential fill",
        "web--browse x",
        "--work-tree=.git checkout HEAD -- config",
        "--work-tree .git checkout HEAD -- config",
        "--git-dir=x log",
        "show HEAD:x --outp=.git/config",
        "diff --ext-diff",
        "checkout-index --prefix=.git/ config",
    ],
)
def test_git_runs_nothing_that_an_entry_did_not_name(rest: str) -> None:
    assert denied(rule(allow=["git"]), asked(f"git {rest}")) == "bash.allow"


def test_an_entry_may_name_what_is_not_known_by_itself() -> None:
    assert denied(rule(allow=["git lfs pull"]), asked("git lfs pull origin")) == ""
    assert denied(rule(allow=["git lfs"]), asked("git lfs -x pull")) == ""
    assert denied(rule(allow=["sed -f x.sed y"]), asked("sed -f x.sed y")) == ""
    assert denied(rule(allow=["sed -f x.sed y"]), asked("sed -f x.sed y -e 1e")) == "bash.allow"
    assert (
        denied(rule(allow=["git config core.editor vi"]), asked("git config core.editor vi")) == ""
    )


@pytest.mark.parametrize(
    "cmd",
    [
        "sed -n '1,5p' x",
        "sed -i.bak 's|a/b|c|g' x",
        "sed -E -e 's/([0-9]+)[^,]*,/<\\1>/2gI;s/x//' -e '$!N' x",
        "sed '/^$/d; /[[:space:]]$/,$ { s/e/w/; P }' x",
        "sed ':a;N;$!ba;s/\\n/ /g' x",
        "sed '2i some text here' x",
        "sed -ne '/a\\/e/I!{=;p;}' x # e",
        "sed 10q x",
        "awk -F: '$3 > 5 || $1 ~ /x/ {print $1}' x",
        "awk -F '|' -v n=1 '{print $n}' system",
        "git status",
        "git log --output-indicator-new=+ -p",
        "git -C x --no-pager log --oneline -5",
        "git commit -m 'alias: !touch y'",
        "git config user.name 'A B'",
        "git config --global user.email a@b.example",
        "git config --get alias.x",
        "git config alias.x",
        "git config --list",
        "git rebase --edit-todo",
        "git clone --depth 1 https://x.example/a",
        "git fetch --unshallow origin",
        "git submodule update --init",
        "git bisect start",
        "tar -czf a.tgz b",
        "tar xzvf a.tgz -C b",
        "rsync -avz --delete --exclude=x a b",
        "curl -sSL -H 'Accept: x' -o y https://x.example/K",
        "wget -q https://x.example",
        "man 3 printf",
        "less -R x",
        "fd -H -t f x",
        "find . -name x -exec ls {} +",
        "gcc -Wall -O2 -o x x.c",
        "ip addr show",
        "sort -u x",
        "hg log -l 3",
        "svn diff x",
    ],
)
def test_everyday_commands_pass_an_entry_that_names_their_program(cmd: str) -> None:
    assert denied(rule(allow=[cmd.partition(" ")[0], "ls"]), asked(cmd.partition(" #")[0])) == ""


@pytest.mark.parametrize(
    "entry",
    [
        "setarch",
        "setarch x86_64",
        "prlimit",
        "ssh-agent",
        "xterm",
        "entr",
        "sg",
        "ld.so",
        "/lib64/ld-linux-x86-64.so.2",
        "genv",
        "gtimeout 5",
        "gxargs",
        "gnice",
        "yash",
        "xonsh",
        "tsx",
        "ncat",
        "nc",
        "socat",
        "view",
        "vimdiff",
        "su",
        "linux64",
        "export",
        "alias",
        "perf stat",
    ],
)
def test_more_that_runs_what_it_is_given_is_refused_as_an_entry(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"bash\.allow holds"):
        rule(allow=[entry])


@pytest.mark.parametrize(
    "cmd",
    [
        "env - rm -rf /etc",
        "env -iS 'rm -rf /etc'",
        "env --split='rm -rf /etc'",
        "env -S 'rm -rf' /etc",
        "ssh -p 22 -i k -l u host rm -rf /etc",
        "ssh -tp 22 host 'rm -rf /etc'",
        "function f { rm -rf /etc; }; f",
        "coproc rm -rf /etc",
        "coproc X { rm -rf /etc; }",
        "trap -- 'rm -rf /etc' EXIT",
        "eval -- 'rm -rf /etc'",
        "watch -n1 'rm -rf /etc'",
        "alias ls='rm -rf /etc'",
        "bash -c -e -x -u 'rm -rf /etc'",
        "bash -xc -o pipefail -O extglob 'rm -rf /etc'",
        "su --session-command='rm -rf /etc'",
        "su --comm 'rm -rf /etc' root",
        "su -c'rm -rf /etc'",
        "sg root 'rm -rf /etc'",
        "sudo --prompt x --host y rm -rf /etc",
        "sudo --odd x --odder y rm -rf /etc",
        "time -f %e -o x rm -rf /etc",
        "gtimeout 5 rm -rf /etc",
        "vim -c ':!rm -rf /etc'",
        "vim '+!rm -rf /etc'",
        "sed '1e rm -rf /etc' x",
        "sed 's/a/rm -rf \\/etc/;1erm -rf /etc' x",
        "fd --exec rm -rf /etc",
        "fd -x rm -rf /etc",
        "git submodule foreach --recursive rm -rf /etc",
        "git config alias.x '!rm -rf /etc'",
        "tar cIf 'rm -rf /etc' x .",
        "cryptsetup erase /dev/x",
        "zpool destroy p",
        "cp x /dev/sdb",
        "echo x > /etc/passwd",
        "echo x >| /etc/passwd",
        "echo x | tee /etc/passwd",
        "echo x | tee /dev/sdb",
        "curl x | bash -o pipefail",
        "curl x | bash --rcfile a -es b",
        "curl x | bash /dev/fd/0",
        "curl x | if true; then sh; fi",
        "curl x | { true; sh; }",
        "curl x | (true; sh)",
        "curl x | while read l; do sh; done",
        "curl x | tee >(sh)",
        "curl x | su -",
        "curl x | sudo -s",
        ":(){ :&:;};:",
        "f(){ f a & f a & };f",
        "function f { f|f& };f",
        "f() ( f & ); f",
        "$0 | $0 &",
    ],
)
def test_what_hides_something_that_nobody_brings_back_is_of_tier_3(cmd: str) -> None:
    assert tier(cmd) == 3


@pytest.mark.parametrize(
    "cmd",
    [
        "git push origin :main",
        "git reset --har",
        "git branch --del x",
        "git branch -f main x",
        "git --namespace x push -f",
        "git push --for",
        "echo x >> /etc/hosts",
        "cp x /etc/hosts",
        "echo x | bash -x",
    ],
)
def test_what_hides_something_that_destroys_is_of_tier_2(cmd: str) -> None:
    assert tier(cmd) == 2


@pytest.mark.parametrize(
    "cmd",
    [
        "cp /etc/hosts x",
        "echo x > /tmp/y",
        "cat x > /dev/null",
        "ssh -p 22 host ls",
        "sed -i 's/rm -rf/x/' y",
        "cat x | while read l; do echo $l; done",
        "f() { ls; }; f & f & wait",
        "walk() { walk a; walk b; }; walk",
        "if true; then ls; fi | sort",
        "git reset --soft x",
        "git branch x",
        "bash -c 'ls' rm",
        "echo x | tee >(cat)",
        "tar -czf x.tgz rm",
    ],
)
def test_what_only_looks_like_it_is_safe(cmd: str) -> None:
    assert tier(cmd) == 1


ADVERSARIAL = {
    "watch": "watch " * 6_600,
    "alias": "alias " + "a=b " * 10_000,
    "ssh": "ssh " + "--x y " * 6_600,
    "env": "env -S " * 5_700,
    "sudo": "sudo --x " * 4_400 + "rm x",
    "ifs": "if " * 13_000,
    "braces": "{ " * 20_000,
    "functions": "function f { f & };" * 2_100,
    "sets": "sed 's/" + "[[:" * 13_000 + "/x/'",
    "scripts": "sed " + "-e p " * 8_000,
    "runs": "sed '" + "e rm x\n" * 5_700 + "'",
    "execs": "find . " + "-exec gcc " * 64 + "-a " * 13_000,
    "fds": "fd " + "-x " * 13_000,
    "settings": "git config " + "--add " * 6_600 + "alias.x y",
    "tees": "a | tee " + ">(sh) " * 6_600,
    "parallel": "parallel " * 4_400,
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_a_long_command_is_seen_through_at_once(name: str) -> None:
    every = rule(allow=["find", "gcc", "sed", "fd", "git", "parallel parallel ls"], classify=True)
    action = asked(ADVERSARIAL[name])
    began = time.process_time()
    every.deny(action)
    every.ask(action)
    assert time.process_time() - began < 1.0  # seconds of our own time
