"""How tests start something in a transient unit of a service manager, and wait for it: by the caller's own manager or
by the system's, with a delegated group below which there can be others, and as root of a namespace or as it is."""
import os
import subprocess

import inside

SYSTEM, OF_THE_USER = (), ("--user",)
# With the caller's streams, and the command's end.
PIPED = ("--pipe", "--wait", "--collect", "--quiet", "--expand-environment=no")
DELEGATE = ("--property=Delegate=cpu memory pids",)
SUBGROUP = (*DELEGATE, "--property=DelegateSubgroup=glove-host")
OWN_MOUNTS = ("unshare", "--mount", "--propagation", "private", "--")
# As the service's own unit does.
MAPPED_ROOT = ("unshare", "--user", "--map-root-user", *OWN_MOUNTS[1:])


def words(*command, manager=OF_THE_USER, properties=SUBGROUP):
    """The command line that runs a command in a unit, with the caller's streams, and ends as it does."""
    return ["systemd-run", *manager, *PIPED, *properties, *command]


def way_to_the_manager():
    """Variables by which systemd-run finds the manager of a user."""
    runtime = f"/run/user/{os.getuid()}"
    return {} if os.getuid() == 0 else {"XDG_RUNTIME_DIR": runtime, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus"}


def environment():
    """Nothing of the caller's."""
    return {"PATH": inside.SEARCH_PATH, "LANG": "C.UTF-8", **way_to_the_manager()}


def run(*command, patience=inside.PATIENCE, **more):
    return subprocess.run(words(*command, **more), env=environment(), text=True, capture_output=True, check=False,
                          timeout=patience)
