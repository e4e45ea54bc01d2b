"""A private apt: downloads Debian packages without changing the user's system.

Used by images/build. It reads the system's own sources (same mirrors, same keyrings), but keeps its
package lists, its cache and its idea of what is installed in a folder of ours. No system apt hook
runs. Does not: install anything, need root, or know what the packages are for.
"""

import glob
import os
import pathlib
import re
import shlex
import subprocess

RELEASE = "bookworm"


class AptError(Exception):
    """One line that says what failed and what to do."""


def _deb822_sources(text):
    """Yields (uris, suites, options) of each enabled `deb` stanza of a .sources file."""
    for stanza in re.split(r"\n\s*\n", text):
        fields = {}
        key = None
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace() and key:
                fields[key] += "\n" + line.strip()
            elif ":" in line:
                key, value = line.split(":", 1)
                key = key.lower()
                fields[key] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes") == "no":
            continue
        options = {}
        signed = fields.get("signed-by")
        if signed and "BEGIN PGP" not in signed:
            options["signed-by"] = signed.replace("\n", " ").strip()
        if fields.get("trusted"):
            options["trusted"] = fields["trusted"]
        yield fields.get("uris", "").split(), fields.get("suites", "").split(), options


def _one_line_sources(text):
    """Yields (uris, suites, options) of each `deb` line of a .list file."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)", line)
        if match:
            pairs = [item.split("=", 1) for item in (match[1] or "").split() if "=" in item]
            options = {key: value for key, value in pairs if key in ("signed-by", "trusted")}
            yield [match[2]], [match[3]], options


def system_sources():
    """Every (uri, suite, options) that the system's apt reads packages from."""
    found = []
    for path in ["/etc/apt/sources.list"] + sorted(glob.glob("/etc/apt/sources.list.d/*")):
        try:
            text = pathlib.Path(path).read_text()
        except OSError:
            continue
        parse = {".sources": _deb822_sources, ".list": _one_line_sources}.get(
            pathlib.Path(path).suffix)
        if parse:
            for uris, suites, options in parse(text):
                found += [(uri, suite, options) for uri in uris for suite in suites]
    return found


def select_sources(sources, backports):
    """The `deb` lines for the release itself, or only for its backports."""
    wanted = [s for s in sources if s[1] == RELEASE or
              (not backports and s[1] in (f"{RELEASE}-updates", f"{RELEASE}-security"))]
    # Only the archive itself has a -security or -backports beside it; other vendors also name
    # their suites after the release.
    wanted = [s for s in wanted if "debian" in s[0]]
    if not any(s[1] == RELEASE for s in wanted):
        raise AptError(f"no '{RELEASE}' archive among the system's apt sources: "
                       f"add Debian 12 to /etc/apt/sources.list")
    lines = []
    for uri, suite, options in wanted:
        suite = f"{RELEASE}-backports" if backports else suite
        text = " ".join(f"{key}={','.join(value.split())}" for key, value in options.items())
        lines.append(f"deb {f'[{text}] ' if text else ''}{uri} {suite} main")
    return sorted(set(lines))


class PrivateApt:
    """apt with all of its state under `folder`."""

    def __init__(self, folder, backports, release_too=False):
        """With `release_too`, what the backports lack comes from the release itself."""
        self._folder = pathlib.Path(folder).resolve()
        self._backports = backports
        self._release_too = release_too
        self._updated = False

    @classmethod
    def of_kernel(cls, release, folder):
        """That of the suite which an image's kernel is from; its lists are read."""
        apt = cls(folder, backports=not release.startswith("6.1."))
        apt.update()
        return apt

    def _write_state(self):
        for sub in ("lists/partial", "cache/archives/partial", "debs"):
            (self._folder / sub).mkdir(parents=True, exist_ok=True)
        (self._folder / "status").touch()
        lines = select_sources(system_sources(), self._backports)
        if self._release_too:
            lines += select_sources(system_sources(), backports=False)
        (self._folder / "sources.list").write_text("\n".join(lines) + "\n")
        # The system's configuration is left out, since its hooks could touch the system; how to
        # reach the network is all that we take over from it.
        dump = subprocess.run(["apt-config", "dump", "Acquire"], check=True, text=True,
                              capture_output=True).stdout
        settings = {
            "Dir::Etc::main": "/dev/null",
            "Dir::Etc::parts": "/dev/null",
            "Dir::Etc::sourcelist": self._folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State": self._folder,
            "Dir::State::lists": self._folder / "lists",
            "Dir::State::status": self._folder / "status",
            "Dir::Cache": self._folder / "cache",
            "Dir::Log": self._folder,
            "APT::Sandbox::User": "root",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }
        config = dump + "".join(f'{key} "{value}";\n' for key, value in settings.items())
        path = self._folder / "apt.conf"
        path.touch(mode=0o600)
        path.write_text(config)

    def _run(self, command, **kwargs):
        # LC_ALL: apt's texts are read below. The command's own output never reaches our stdout.
        env = dict(os.environ, APT_CONFIG=str(self._folder / "apt.conf"), LC_ALL="C")
        done = subprocess.run(command, env=env, text=True, capture_output=True, **kwargs)
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines()
            reason = next((l for l in lines if l.startswith("E:")), lines[-1] if lines else "?")
            raise AptError(f"'{shlex.join(map(str, command))}' failed: {reason} "
                           f"(is the network reachable? try 'apt-get update' by hand)")
        return done.stdout

    def update(self):
        """Reads the package lists, once per object."""
        if not self._updated:
            self._write_state()
            self._run(["apt-get", "-q", "update"])
            self._updated = True

    def dependency(self, package, pattern):
        """The first package that `package` depends on and whose name matches `pattern`."""
        shown = self._run(["apt-cache", "--no-all-versions", "show", package])
        match = re.search(rf"^Depends:.*?\b({pattern})(?=[ ,\n])", shown, re.MULTILINE)
        if not match:
            raise AptError(f"package {package} depends on nothing like {pattern}: "
                           f"Debian changed its packaging, so images/build needs to learn of it")
        return match[1]

    def download(self, package):
        """Downloads one package; returns the path of its .deb."""
        debs = self._folder / "debs"
        for old in debs.glob(f"{package}_*.deb"):
            old.unlink()
        self._run(["apt-get", "-q", "download", package], cwd=debs)
        return next(debs.glob(f"{package}_*.deb"))

    def download_closure(self, package):
        """Downloads a package and all that it depends on; returns the paths."""
        archives = self._folder / "cache/archives"
        for old in archives.glob("*.deb"):
            old.unlink()
        # Without a target release, apt would not take from the backports what the release has.
        target = ["-t", f"{RELEASE}-backports"] if self._backports else []
        self._run(["apt-get", "-q", "-y", "--download-only", "--no-install-recommends", *target,
                   "-o", "Debug::NoLocking=1", "install", package])
        return sorted(archives.glob("*.deb"))
