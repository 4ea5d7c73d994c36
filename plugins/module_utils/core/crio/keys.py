# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every key that CRI-O's configuration has, by table and release line.

Source: the ``toml`` tags of the structures in ``pkg/config/config.go``, ``pkg/config/workloads.go`` and
``internal/config/nri/nri.go`` at the last tag of each line from 1.20 to 1.36. A key that CRI-O does not know it drops
without a word, and a value of another type than the key's stops it.
"""

from __future__ import annotations

import typing as t

#: Stand-ins for the tables whose names the user chooses: ``crio.runtime.runtimes.NAME``, ``crio.runtime.workloads.NAME``.
HANDLER = "crio.runtime.runtimes.*"
WORKLOAD = "crio.runtime.workloads.*"

#: Oldest and newest line that the table was made from (minor numbers of 1.x).
FIRST, LAST = 20, 36

#: name:kind[:first line[:last line]]. Kinds: s string, b boolean, i whole number, l list of strings, m table of strings,
#: d duration (a string or a number), t table.
_SPEC = {
    HANDLER: """
        allowed_annotations:l container_create_timeout:i:35 container_min_memory:s:29 default_annotations:m:31 exec_cpu_affinity:s:34
        inherit_default_runtime:b:31 monitor_cgroup:s:24 monitor_env:l:24 monitor_exec_cgroup:s:24 monitor_path:s:24 no_sync_log:b:31
        platform_runtime_paths:m:27 privileged_without_host_devices:b runtime_config_path:s:22 runtime_path:s runtime_pull_image:b:28 runtime_root:s
        runtime_type:s seccomp_profile:s:34 stream_websockets:b:34
    """,
    WORKLOAD: """
        activation_annotation:s:21 allowed_annotations:l:23 annotation_prefix:s:21 resources:t:21
    """,
    "crio": """
        clean_shutdown_file:s imagestore:s:29 internal_repair:b:28 internal_wipe:b log_dir:s root:s runroot:s storage_driver:s storage_option:l
        version_file:s version_file_persist:s
    """,
    "crio.api": """
        grpc_max_recv_msg_size:i grpc_max_send_msg_size:i listen:s stream_address:s stream_enable_tls:b stream_idle_timeout:s stream_port:s
        stream_tls_ca:s stream_tls_cert:s stream_tls_key:s tls_cipher_suites:l:35 tls_min_version:s:35
    """,
    "crio.image": """
        auto_reload_registries:b:30 big_files_temporary_dir:s default_transport:s global_auth_file:s image_volumes:s insecure_registries:l
        namespaced_auth_dir:s:34 oci_artifact_mount_support:b:33 pause_command:s pause_image:s pause_image_auth_file:s pinned_images:l:28
        pull_progress_timeout:d:30 registries:l::30 short_name_mode:s:34 signature_policy:s signature_policy_dir:s:27
    """,
    "crio.metrics": """
        enable_metrics:b metrics_cert:s:22 metrics_collectors:l:22 metrics_host:s:28 metrics_key:s:22 metrics_port:i metrics_socket:s
    """,
    "crio.network": """
        cni_default_network:s cni_status_grace_period:d:36 network_dir:s plugin_dir:s plugin_dirs:l
    """,
    "crio.nri": """
        default_validator:t:34 enable_nri:b:26 nri_disable_connections:b:26 nri_listen:s:26 nri_plugin_config_dir:s:26 nri_plugin_dir:s:26
        nri_plugin_registration_timeout:d:26 nri_plugin_request_timeout:d:26
    """,
    "crio.nri.default_validator": """
        nri_enable_default_validator:b:34 nri_validator_reject_custom_seccomp_adjustment:b:34 nri_validator_reject_namespace_adjustment:b:34
        nri_validator_reject_oci_hook_adjustment:b:34 nri_validator_reject_runtime_default_seccomp_adjustment:b:34
        nri_validator_reject_unconfined_seccomp_adjustment:b:34 nri_validator_required_plugins:l:34
        nri_validator_tolerate_missing_plugins_annotation:s:34
    """,
    "crio.runtime": """
        absent_mount_sources_to_reject:l:21 add_inheritable_capabilities:b:24 additional_artifact_stores:l:35 additional_devices:l
        allowed_devices:l:23 apparmor_profile:s bind_mount_prefix:s blockio_config_file:s:22 blockio_reload:b:29 cdi_spec_dirs:l:24 cgroup_manager:s
        conmon:s conmon_cgroup:s conmon_env:l container_attach_socket_dir:s container_exits_dir:s ctr_stop_timeout:i decryption_keys_path:s
        default_capabilities:l default_env:l default_mounts_file:s default_runtime:s default_sysctls:l default_ulimits:l
        device_ownership_from_security_context:b:22 disable_hostport_mapping:b:28 drop_infra_ctr:b enable_criu_support:b:25 enable_pod_events:b:26
        gid_mappings:s hooks_dir:l hostnetwork_disable_selinux:b:27 infra_ctr_cpuset:s irqbalance_config_file:s irqbalance_config_restore_file:s:27
        log_filter:s log_level:s log_size_max:i log_to_journald:b manage_ns_lifecycle:b::20 min_injected_gomaxprocs:i:33 minimum_mappable_gid:i:23
        minimum_mappable_uid:i:23 namespaces_dir:s no_pivot:b pids_limit:i pinns_path:s privileged_seccomp_profile:s:33 rdt_config_file:s:22
        read_only:b runtimes:t seccomp_profile:s seccomp_use_default_when_empty:b::29 selinux:b separate_pull_cgroup:s shared_cpuset:s:28
        timezone:s:30 uid_mappings:s workloads:t:21
    """,
    "crio.stats": """
        collection_period:i:30 included_pod_metrics:l:30 stats_collection_period:i:23
    """,
    "crio.tracing": """
        enable_tracing:b:23 tracing_endpoint:s:23 tracing_sampling_rate_per_million:i:23
    """,
    "crio.runtime.workloads.*.resources": """
        cpulimit:i:29 cpuperiod:i:29 cpuquota:i:29 cpuset:s:21 cpushares:i:21
    """,
}

#: Tables in the table ``crio``, with the line that brought them.
TABLES = {"api": 20, "runtime": 20, "image": 20, "network": 20, "metrics": 20, "tracing": 23, "stats": 23, "nri": 26}


class Key(t.NamedTuple):
    """A key of the configuration. kind: as in the table above. first, last: minor numbers of the lines that know it."""

    name: str
    kind: str
    first: int
    last: int

    def known_on(self, minor: int) -> bool:
        """Whether a line knows it; lines newer than the table are taken for its last one."""
        return self.first <= minor and (self.last >= min(minor, LAST))


def _parsed(spec: str) -> t.Dict[str, Key]:
    found = {}
    for item in spec.split():
        name, kind, first, last = (item.split(":") + ["", ""])[:4]
        found[name] = Key(name, kind, int(first or FIRST), int(last or LAST))
    return found


KEYS: t.Dict[str, t.Dict[str, Key]] = {table: _parsed(spec) for table, spec in _SPEC.items()}

#: Values of ``allowed_annotations``: annotation → first line (``pkg/annotations``). Another one costs the handler.
_ANNOTATIONS = {
    21: """io.kubernetes.cri-o.userns-mode io.kubernetes.cri-o.UnifiedCgroup io.kubernetes.cri-o.ShmSize io.kubernetes.cri-o.Devices
        cpu-load-balancing.crio.io cpu-quota.crio.io irq-load-balancing.crio.io io.containers.trace-syscall
        io.kubernetes.cri-o.TrySkipVolumeSELinuxLabel""",
    22: "io.kubernetes.cri.rdt-class",
    23: "io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw",
    25: "cpu-c-states.crio.io cpu-freq-governor.crio.io",
    26: "io.kubernetes.cri-o.seccompNotifierAction io.kubernetes.cri-o.LinkLogs",
    27: """io.kubernetes.cri-o.umask bundle org.systemd.property. org.criu.config module.wasm.image/variant
        io.kubernetes.cri.container-type run.oci.""",
    28: "io.kubernetes.cri-o.PodLinuxOverhead io.kubernetes.cri-o.PodLinuxResources cpu-shared.crio.io",
    30: "seccomp-profile.kubernetes.cri-o.io io.kubernetes.cri-o.DisableFIPS",
    35: """userns-mode.crio.io unified-cgroup.crio.io shm-size.crio.io devices.crio.io try-skip-volume-selinux-label.crio.io
        cgroup2-mount-hierarchy-rw.crio.io seccomp-notifier-action.crio.io link-logs.crio.io umask.crio.io pod-linux-overhead.crio.io
        pod-linux-resources.crio.io seccomp-profile.crio.io disable-fips.crio.io spoofed.crio.io platform-runtime-path.crio.io
        io.kubernetes.cri-o.Spoofed io.kubernetes.cri-o.PlatformRuntimePath org.opencontainers.image.stopSignal""",
}
ANNOTATIONS: t.Dict[str, int] = {name: first for first, names in _ANNOTATIONS.items() for name in names.split()}


def field(table: t.Mapping[str, t.Any], name: str) -> t.Any:
    """The value that CRI-O reads for a key: BurntSushi/toml takes any letter case, the exact one first."""
    if name in table:
        return table[name]
    return next((value for key, value in table.items() if key.lower() == name.lower()), None)


__all__ = ("ANNOTATIONS", "FIRST", "HANDLER", "KEYS", "Key", "LAST", "TABLES", "WORKLOAD", "field")
