"""Whole hosts for tests: a Debian root, systemd, sshd and a containerd or CRI-O of any release line as its package's own service.

    python -m tests.hosts check                                   why this machine cannot have such hosts; nothing when it can
    python -m tests.hosts up DIRECTORY node-1=containerd-1.7 …    make hosts, that container runtime installed, not started
    python -m tests.hosts install DIRECTORY node-1 containerd-2.1 another release, as a package manager lays it down
    python -m tests.hosts ask DIRECTORY node-1 status             the daemon's own answer, by the independent client cri-ask
    python -m tests.hosts handlers DIRECTORY node-1               the handlers that a sandbox can have, by the daemon's word
    python -m tests.hosts start-pod DIRECTORY node-1 [HANDLER]    one more pod that stays
    python -m tests.hosts check-pod DIRECTORY node-1 [MORE]       they still run, as the same processes, and nothing else does but so many more
    python -m tests.hosts try-pods DIRECTORY node-1 HANDLER …     a pod of each handler, made and removed
    python -m tests.hosts note-state DIRECTORY node-1             note the checksum, mode and owner of every file, and the daemon's process
    python -m tests.hosts check-state DIRECTORY node-1 [BUT]      everything is as noted, but what a regular expression names
    python -m tests.hosts calls DIRECTORY node-1                  how many commands sshd has been asked for so far
    python -m tests.hosts serve-cluster DIRECTORY FILE node-1 …   an API server with these objects, reached in each host's own network
    python -m tests.hosts join DIRECTORY node-1                   a kubelet as a service of the host; its Node is Ready afterwards
    python -m tests.hosts kubectl DIRECTORY …                     kubectl as that cluster's admin
    python -m tests.hosts exec DIRECTORY node-1 COMMAND …         a command in the host, past ssh
    python -m tests.hosts down DIRECTORY                          remove the hosts

DIRECTORY is the test's own; it gets the key and, for each host, a program ssh-NAME that is ssh to that host.
"""
