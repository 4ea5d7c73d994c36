#!/bin/sh
# rc-crosscheck: has containerd on this node every handler that the RuntimeClasses of the cluster name?
#
#   rc-crosscheck DUMP   judges the file DUMP, the output of `containerd config dump`
#   rc-crosscheck        judges `containerd config dump` of this node and what the daemon answers over CRI:
#                        a handler that is in the dump and not loaded is missing, and so is one that is
#                        loaded now and not in the dump, since the next restart loses it
#
# Prints MISSING=<handler> for each handler that is not there and exits 1, or OK and exits 0.
# Whatever could not be determined is an error on stderr and exit 2, never OK. It never reads the
# configuration file: that says what somebody wrote, not what was loaded.
#
# The handlers come from `kubectl get runtimeclass`, or from the file RC_HANDLERS_FILE (one handler a line;
# a line that starts with # is a comment) on a node without credentials. More settings from the environment:
#   CONTAINERD                   the executable, default containerd (k3s, rke2, k0s and microk8s have their own)
#   CONTAINERD_CONFIG            the file given to it with -c, default its own
#   CONTAINER_RUNTIME_ENDPOINT   the socket, as for crictl; default: the address in the dump
#   RC_TIMEOUT                   seconds to wait for an answer of the daemon, default 5
#
# Part of the Ansible collection kubenode.runtime_gate, whose role gate says why a handler is missing.
# GNU General Public License v3.0 or later (see https://www.gnu.org/licenses/gpl-3.0.txt)
set -u

fail() {
    echo "rc-crosscheck: $1" >&2
    exit 2
}

[ $# -le 1 ] || fail "one argument at most: the file that holds the output of \`containerd config dump\`"
work=$(mktemp -d) || fail "no temporary directory could be made"
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

# --- the handlers that are asked for ---------------------------------------------------------------
if [ -n "${RC_HANDLERS_FILE:-}" ]; then
    [ -f "$RC_HANDLERS_FILE" ] || fail "RC_HANDLERS_FILE: $RC_HANDLERS_FILE is no file"
    cat -- "$RC_HANDLERS_FILE" >"$work/handlers" || fail "RC_HANDLERS_FILE: $RC_HANDLERS_FILE cannot be read"
else
    command -v kubectl >/dev/null 2>&1 ||
        fail "kubectl is not here; give the handlers in a file, one a line: RC_HANDLERS_FILE=/path/to/file"
    kubectl get runtimeclass -o jsonpath='{range .items[*]}{.handler}{"\n"}{end}' >"$work/handlers" 2>"$work/error" ||
        fail "kubectl get runtimeclass failed: $(cat "$work/error"); mend that, or give RC_HANDLERS_FILE=/path"
fi

# --- the dump ---------------------------------------------------------------------------------------
if [ $# -eq 1 ]; then
    [ -f "$1" ] || fail "$1 is no file"
    cat -- "$1" >"$work/dump" || fail "$1 cannot be read"
    mode=dump
else
    containerd=${CONTAINERD:-containerd}
    command -v "$containerd" >/dev/null 2>&1 ||
        fail "$containerd is not here; name the executable of this node's containerd: CONTAINERD=/path/to/containerd"
    # containerd 2.0 prints a dump that lacks what it migrates when it starts; its `config migrate` has it.
    case $("$containerd" --version 2>/dev/null) in
    *' 2.0.'* | *' v2.0.'*) print=migrate ;;
    *) print=dump ;;
    esac
    "$containerd" ${CONTAINERD_CONFIG:+-c "$CONTAINERD_CONFIG"} config "$print" >"$work/dump" 2>"$work/error" ||
        fail "$containerd config $print failed: $(cat "$work/error")"
    mode=live
fi

# --- the judge: the first Python here that has a TOML parser ---------------------------------------
cat >"$work/judge.py" <<'PYTHON'
import json
import os
import socket
import struct
import sys

NEW, OLD, SHORT = "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri"


def fail(message):
    sys.stderr.write("rc-crosscheck: %s\n" % message)
    sys.exit(2)


def note(message):
    sys.stderr.write("rc-crosscheck: %s\n" % message)


def toml_parser():
    for name in ("tomllib", "tomli", "pip._vendor.tomli", "setuptools._vendor.tomli", "setuptools.extern.tomli"):
        try:
            return __import__(name, fromlist=["loads"])
        except ImportError:
            continue
    return None


def table(value, *path):
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def dumped_handlers(dump):
    """What the dump would load. Under version 3 and later, or where the new name stands, only the new name counts."""
    version = dump.get("version", 1)
    plugins = table(dump, "plugins")
    if NEW in plugins or version >= 3:
        plugin = NEW
    else:
        plugin = OLD if OLD in plugins or version == 2 else SHORT
    disabled = {NEW, OLD, SHORT} & set(dump.get("disabled_plugins") or [])
    if disabled:
        note("the dump disables CRI (disabled_plugins has %s): nothing is loaded" % ", ".join(sorted(disabled)))
        return set()
    containerd = table(plugins, plugin, "containerd")
    handlers = set(table(containerd, "runtimes"))
    default = containerd.get("default_runtime_name") or ""
    if plugin != NEW:  # the two legacy tables of containerd 1.x are handlers too
        if table(containerd, "untrusted_workload_runtime").get("runtime_type"):
            handlers.add("untrusted")
        if table(containerd, "default_runtime").get("runtime_type"):
            default = "default"
            handlers.add(default)
    if default not in handlers:
        note("the dump has no handler %r, which its default_runtime_name names: CRI does not start" % default)
        return set()
    return handlers


def endpoint(dump):
    """The path of the socket on which the daemon of this dump listens."""
    given = os.environ.get("CONTAINER_RUNTIME_ENDPOINT", "")
    address = given[len("unix://"):] if given.startswith("unix://") else given
    return (address or table(dump, "grpc").get("address")
            or table(dump, "plugins", "io.containerd.server.v1.grpc").get("address")
            or "/run/containerd/containerd.sock")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(number, bytes) of each length-delimited field of a protobuf message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 2:
            size, at = varint(data, at)
            yield key >> 3, data[at:at + size]
            at += size
        elif key & 7 == 0:
            at = varint(data, at)[1]
        else:
            at += 8 if key & 7 == 1 else 4


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """One header of HPACK, not indexed and not compressed."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def receive(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise OSError("the connection was closed")
        data += more
    return data


def call_status(path, api, timeout):
    """The message that RuntimeService.Status answers, b"" where the daemon answers and has no such service."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        connection.connect(path)
        headers = b"".join(literal(name, value) for name, value in (
            (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/runtime." + api + b".RuntimeService/Status"),
            (b":authority", b"localhost"), (b"content-type", b"application/grpc"), (b"te", b"trailers")))
        request = b"\x08\x01"  # verbose: true
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                           + frame(4, 0, 0, struct.pack(">HI", 4, 2 ** 31 - 1))  # any size of an answer on one stream
                           + frame(8, 0, 0, struct.pack(">I", 2 ** 30))          # … and on the connection
                           + frame(1, 4, 1, headers)
                           + frame(0, 1, 1, b"\x00" + struct.pack(">I", len(request)) + request))
        body = b""
        while True:
            head = receive(connection, 9)
            payload = receive(connection, struct.unpack(">I", b"\x00" + head[:3])[0])
            kind, flags = head[3], head[4]
            if kind == 4 and not flags & 1:
                connection.sendall(frame(4, 1, 0, b""))
            elif kind == 6 and not flags & 1:
                connection.sendall(frame(6, 1, 0, payload))
            elif kind == 0:
                body += payload
            elif kind in (3, 7):
                raise OSError("the daemon broke the call off")
            if kind in (0, 1) and flags & 1:
                return body[5:]
    finally:
        connection.close()


def loaded_handlers(path, timeout):
    """What the running daemon has; the empty set where CRI is dead."""
    try:
        answer = call_status(path, b"v1", timeout) or call_status(path, b"v1alpha2", timeout)
    except (FileNotFoundError, ConnectionRefusedError):
        note("nobody listens on %s: the daemon does not run, nothing is loaded" % path)
        return set()
    except socket.timeout:
        fail("the daemon did not answer on %s within %s seconds" % (path, timeout))
    except PermissionError:
        fail("%s may not be opened by this user; run it as root" % path)
    except (OSError, IndexError) as error:
        fail("CRI could not be asked on %s: %s" % (path, error))
    if not answer:
        note("the daemon runs and does not serve CRI on %s: nothing is loaded" % path)
        return set()
    for number, entry in fields(answer):
        pair = dict(fields(entry)) if number == 2 else {}
        if pair.get(1) == b"config":
            return set(table(json.loads(pair[2].decode("utf-8")), "containerd", "runtimes"))
    fail("the answer of CRI on %s holds no configuration; is it containerd?" % path)


def read(path, what):
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except UnicodeDecodeError:
        fail("%s is not UTF-8" % what)


def main(mode, dump_path, handlers_path):
    text = read(dump_path, "the dump")
    lines = [line.strip() for line in read(handlers_path, "the list of handlers").splitlines()]
    wanted = sorted({line for line in lines if line and not line.startswith("#")})  # no handler's name can start with #
    if not wanted and os.environ.get("RC_HANDLERS_FILE"):
        fail("RC_HANDLERS_FILE: %s names no handler, so nothing can be checked" % os.environ["RC_HANDLERS_FILE"])
    if not text.strip():
        fail("the dump is empty")
    parser = toml_parser()
    try:
        dump = parser.loads(text)
    except (ValueError, RecursionError) as error:
        fail("the dump is not TOML: %s" % error)
    if not isinstance(dump.get("plugins"), dict) or not isinstance(dump.get("version", 1), int):
        fail("this is no output of `containerd config dump`: it has no plugins")
    dumped = dumped_handlers(dump)
    served = dumped
    if mode == "live":
        try:
            served = loaded_handlers(endpoint(dump), float(os.environ.get("RC_TIMEOUT", "5")))
        except ValueError as error:
            fail("%s" % error)
        for handler in sorted((served - dumped) & set(wanted)):
            note("%s is loaded and not in the dump: the next restart loses it" % handler)
        for handler in sorted((dumped - served) & set(wanted)):
            note("%s is in the dump and not loaded" % handler)
    if not (dumped and served):
        if not wanted:
            fail("nothing is loaded here, and no handler was asked for")
    elif not wanted:
        note("no handler was asked for")
    missing = [handler for handler in wanted if handler not in dumped & served]
    for handler in missing:
        print("MISSING=" + handler)
    if not missing:
        print("OK")
    return 1 if missing else 0


if sys.argv[1:] == ["--has-parser"]:
    sys.exit(0 if sys.version_info >= (3, 6) and toml_parser() else 1)
try:
    sys.exit(main(*sys.argv[1:]))
except Exception as error:  # a defect or a full disk: without a verdict that is neither MISSING nor OK
    fail("%s: %s" % (type(error).__name__, error))
PYTHON

for python in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3 /usr/libexec/platform-python; do
    "$python" "$work/judge.py" --has-parser >/dev/null 2>&1 || continue
    "$python" "$work/judge.py" "$mode" "$work/dump" "$work/handlers"
    status=$?
    [ "$status" -le 1 ] || exit 2 # also where the interpreter was killed
    exit "$status"
done
fail "no TOML parser is here: Python 3.11 or later has one, or install python3-tomli"
