#!/usr/bin/env bash
# apt.sh DIR ARCHITECTURES SUITE... sets up in DIR an apt of its own for those
# suites and architectures of Debian, whose lists are at most a day old, and
# prints the path of its configuration, for APT_CONFIG. The machine's sources and
# packages stay as they are.
set -euo pipefail
apt=$1 architectures=$2
shift 2
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ ! -e $keyring ]; then
	echo "no $keyring (apt-get install debian-archive-keyring)" >&2
	exit 1
fi
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
exec 9>"$apt/lock" # several at once share the lists
flock 9
: >"$apt/status"
for suite in "$@"; do
	echo "deb [signed-by=$keyring] http://deb.debian.org/debian $suite main"
done >"$apt/sources.list"
cat >"$apt/apt.conf" <<CONF
Dir::State "$apt";
Dir::State::lists "lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Architectures { $(printf '"%s"; ' $architectures)};
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
CONF
export APT_CONFIG=$apt/apt.conf
if [ -z "$(find "$apt/lists" -name '*Packages*' -mtime -1 | head -1)" ]; then
	apt-get update -qq >&2
fi
echo "$apt/apt.conf"
