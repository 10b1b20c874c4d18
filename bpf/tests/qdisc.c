/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Configures Cutline's queueing disciplines in the virtual machine of `make test-vm`, also as `cutline qdisc` does not, and prints their statistics.
 * The command has loaded the object and pinned its maps in a folder. It is a test of the interface of include/cutline/qdisc.h, in its order of steps.
 *
 *     qdisc set FOLDER INSTANCE INTERFACE [NAME VALUE]...   configures an interface of this network namespace
 *     qdisc show FOLDER INSTANCE                            a line of JSON
 *     qdisc forget FOLDER INSTANCE INTERFACE                undoes `set`
 *     qdisc memory FOLDER INTERFACE                         a line of JSON: bytes of the maps and entries of an interface, as the kernel counts them
 *     qdisc salt FOLDER INTERFACE                           seconds until Sieve draws another salt for its table of flows, and the salt
 *     qdisc costs                                           calls, instructions and time of each loaded program
 *     qdisc objects                                         number of programs and maps in the kernel
 */
#include "fields.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void fail(const char *what)
{
    printf("FAILED %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Sets a field of a configuration by its name. */
static void set(struct cutline_config *config, const char *name, const char *value)
{
    errno = EINVAL;
    if (set_field(config, name, strtoull(value, NULL, 0)))
        fail(name);
}

static int pinned(const char *folder, const char *map)
{
    char path[256];
    int fd;

    snprintf(path, sizeof path, "%s/%s", folder, map);
    fd = bpf_obj_get(path);
    if (fd < 0)
        fail(path);
    return fd;
}

/* Creates an inner map like its template, with so many entries. */
static void fill(const char *folder, const char *template, const char *outer, cl_u32 instance, cl_u32 entries)
{
    struct bpf_map_info info = { 0 };
    cl_u32 size = sizeof info;
    LIBBPF_OPTS(bpf_map_create_opts, options);
    int fd = pinned(folder, template), inner;

    if (bpf_map_get_info_by_fd(fd, &info, &size))
        fail(template);
    options.map_flags = info.map_flags;
    options.btf_fd = bpf_btf_get_fd_by_id(info.btf_id);
    options.btf_key_type_id = info.btf_key_type_id;
    options.btf_value_type_id = info.btf_value_type_id;
    inner = bpf_map_create(info.type, "cutline_inner", info.key_size, info.value_size, entries, &options);
    if (inner < 0 || bpf_map_update_elem(pinned(folder, outer), &instance, &inner, BPF_ANY))
        fail(outer);
}

/* Sets of a table of Sieve, those of its filters among them: 1192 flows in 28 kB. */
enum { ACCOUNT_SETS = 175 };

/* Returns whether the object in a folder is Sieve's. */
static int has_accounts(const char *folder)
{
    char path[256];

    snprintf(path, sizeof path, "%s/cutline_accounts", folder);
    return !access(path, F_OK);
}

static struct cutline_interface key_of(const char *interface)
{
    struct stat namespace;

    if (stat("/proc/self/ns/net", &namespace))
        fail("/proc/self/ns/net");
    return (struct cutline_interface){ .namespace_inode = namespace.st_ino, .index = if_nametoindex(interface) };
}

static void configure(const char *folder, cl_u32 instance, const char *interface, char **words)
{
    struct cutline_interface key = key_of(interface);
    struct cutline_assignment assignment = { .instance = instance, .queues = 1 };
    struct cutline_config config;
    int configs = pinned(folder, "cutline_configs"), interfaces = pinned(folder, "cutline_interfaces");
    int is_known = !bpf_map_lookup_elem(interfaces, &key, &assignment);

    if (!is_known || bpf_map_lookup_elem(configs, &instance, &config) || !config.layout)
        begin(&config);
    for (; words[0] && words[1]; words += 2)
        set(&config, words[0], words[1]);
    config.generation++;
    if (!is_known) {
        fill(folder, "cutline_state_template", "cutline_states", instance, 1);
        fill(folder, "cutline_slot_template", "cutline_slots", instance, config.limit_packets + 1);
        if (has_accounts(folder))
            fill(folder, "cutline_account_template", "cutline_accounts", instance, ACCOUNT_SETS);
    }
    if (bpf_map_update_elem(configs, &instance, &config, BPF_ANY) || bpf_map_update_elem(interfaces, &key, &assignment, BPF_ANY))
        fail(interface);
}

static void forget(const char *folder, cl_u32 instance, const char *interface)
{
    struct cutline_interface key = key_of(interface);

    if (bpf_map_delete_elem(pinned(folder, "cutline_interfaces"), &key) || bpf_map_delete_elem(pinned(folder, "cutline_states"), &instance) ||
        bpf_map_delete_elem(pinned(folder, "cutline_slots"), &instance) ||
        (has_accounts(folder) && bpf_map_delete_elem(pinned(folder, "cutline_accounts"), &instance)))
        fail(interface);
}

/* Returns the bytes of a map, which its descriptor shows. */
static unsigned long long bytes_of(int map)
{
    unsigned long long bytes = 0;
    char path[64], line[128];
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", map);
    file = fopen(path, "r");
    if (!file)
        fail(path);
    while (fgets(line, sizeof line, file) && sscanf(line, "memlock: %llu", &bytes) != 1)
        ;
    fclose(file);
    return bytes;
}

/* Returns the inner map of an interface in an outer map. */
static int inner_map(const char *folder, const char *outer, const char *interface)
{
    struct cutline_interface key = key_of(interface);
    struct cutline_assignment assignment;
    cl_u32 id;
    int inner;

    if (bpf_map_lookup_elem(pinned(folder, "cutline_interfaces"), &key, &assignment) ||
        bpf_map_lookup_elem(pinned(folder, outer), &assignment.instance, &id))
        fail(interface);
    inner = bpf_map_get_fd_by_id(id);
    if (inner < 0)
        fail(outer);
    return inner;
}

static void memory(const char *folder, const char *interface)
{
    static const char *const OUTER[] = { "cutline_states", "cutline_slots", "cutline_accounts" };

    printf("{\"configuration\": %zu, \"statistics\": %zu", sizeof(struct cutline_config), sizeof(struct cutline_statistics));
    for (int i = 0; i < 2 + has_accounts(folder); i++)
        printf(", \"%s\": %llu", OUTER[i], bytes_of(inner_map(folder, OUTER[i], interface)));
    printf("}\n");
}

/* Returns the place of a member of a structure, B, and goes on to the member's type. */
static cl_u32 member(const struct btf *btf, cl_u32 *type, const char *name)
{
    const struct btf_type *structure = btf__type_by_id(btf, *type);
    const struct btf_member *members = btf_members(structure);

    for (cl_u32 i = 0; i < btf_vlen(structure); i++)
        if (!strcmp(btf__name_by_offset(btf, members[i].name_off), name)) {
            *type = btf__resolve_type(btf, members[i].type);
            return btf_member_bit_offset(structure, i) / 8;
        }
    errno = ENOENT;
    fail(name);
}

static void salt(const char *folder, const char *interface)
{
    int state = inner_map(folder, "cutline_states", interface);
    struct bpf_map_info info = { 0 };
    cl_u32 size = sizeof info, type, at, first = 0, of_accounts;
    cl_u64 found, until;
    struct timespec now;
    struct btf *btf;
    char *value;

    if (bpf_map_get_info_by_fd(state, &info, &size) || !(btf = btf__load_from_kernel_by_id(info.btf_id)))
        fail("the types of the state");
    type = btf__resolve_type(btf, info.btf_value_type_id);
    at = member(btf, &type, "sieve");
    at += member(btf, &type, "accounts");
    of_accounts = type;
    value = malloc(info.value_size);
    if (!value || bpf_map_lookup_elem(state, &first, value))
        fail("cutline_states");
    memcpy(&found, value + at + member(btf, &type, "salt"), sizeof found);
    memcpy(&until, value + at + member(btf, &of_accounts, "salt_until"), sizeof until);
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%lld %llx\n", (long long)(until / 1000000000) - now.tv_sec, (unsigned long long)found);
}

#define PACKET ((double)(1 << CUTLINE_PACKET_BITS))

static void print_count(const char *name, struct cutline_count count)
{
    printf(", \"%s\": [%llu, %llu]", name, (unsigned long long)count.packets, (unsigned long long)count.bytes);
}

static void show(const char *folder, cl_u32 instance)
{
    struct cutline_statistics found;

    if (bpf_map_lookup_elem(pinned(folder, "cutline_statistics"), &instance, &found))
        fail("cutline_statistics");
    printf("{\"layout\": %u, \"generation\": %u, \"refused\": %u, \"running\": %u", found.layout, found.generation, found.refused_generation,
           found.running);
    print_count("received", found.received);
    print_count("sent", found.sent);
    print_count("early", found.early);
    print_count("overflow", found.overflow);
    print_count("unsent", found.unsent);
    print_count("not_ip", found.not_ip);
    print_count("backlog", found.backlog);
    print_count("below", found.below_fair_share);
    print_count("above", found.above_fair_share);
    printf(", \"average\": %.3f, \"max_p\": %.6f, \"target\": %.3f", found.average / PACKET, found.max_p / (double)CUTLINE_ONE, found.target / PACKET);
    printf(", \"p\": %.9f, \"slipped_ms\": %.3f, \"fair_share_bps\": %llu, \"hints\": {", found.probability / (double)CUTLINE_ONE,
           found.slipped / 1e6, (unsigned long long)found.fair_share_bps);
    for (int i = 0, first = 1; i < CUTLINE_HINTS; i++) {
        struct cutline_hint_statistics *hint = &found.hints[i];

        if (!hint->departed.packets && !hint->dropped.packets)
            continue;
        printf("%s\"%d\": {\"departed\": %llu, \"dropped\": %llu, \"mean_wait_ms\": %.3f, \"longest_wait_ms\": %.3f}", first ? "" : ", ", i + 1,
               (unsigned long long)hint->departed.packets, (unsigned long long)hint->dropped.packets,
               hint->departed.packets ? hint->waited / 1e6 / hint->departed.packets : 0, hint->longest_wait / 1e6);
        first = 0;
    }
    printf("}, \"waits\": [");
    for (int i = 0; i < CUTLINE_WAITS; i++)
        printf("%s%llu", i ? ", " : "", (unsigned long long)found.waits[i]);
    printf("]}\n");
}

static void costs(void)
{
    for (cl_u32 id = 0; !bpf_prog_get_next_id(id, &id);) {
        struct bpf_prog_info info = { 0 };
        cl_u32 size = sizeof info;
        int fd = bpf_prog_get_fd_by_id(id);

        if (fd < 0 || bpf_prog_get_info_by_fd(fd, &info, &size))
            fail("bpf_prog_get_info_by_fd");
        if (info.type == BPF_PROG_TYPE_STRUCT_OPS)
            printf("COST {\"program\": \"%s\", \"calls\": %llu, \"ns\": %llu, \"instructions\": %u, \"jited\": %u, \"verified\": %u}\n", info.name,
                   (unsigned long long)info.run_cnt, (unsigned long long)info.run_time_ns, info.xlated_prog_len / 8, info.jited_prog_len,
                   info.verified_insns);
        close(fd);
    }
}

static void objects(void)
{
    cl_u32 number = 0;

    for (cl_u32 id = 0; !bpf_prog_get_next_id(id, &id);)
        number++;
    for (cl_u32 id = 0; !bpf_map_get_next_id(id, &id);)
        number++;
    printf("%u\n", number);
}

int main(int count, char **words)
{
    if (count >= 5 && !strcmp(words[1], "set"))
        configure(words[2], atoi(words[3]), words[4], words + 5);
    else if (count == 4 && !strcmp(words[1], "show"))
        show(words[2], atoi(words[3]));
    else if (count == 5 && !strcmp(words[1], "forget"))
        forget(words[2], atoi(words[3]), words[4]);
    else if (count == 4 && !strcmp(words[1], "memory"))
        memory(words[2], words[3]);
    else if (count == 4 && !strcmp(words[1], "salt"))
        salt(words[2], words[3]);
    else if (count == 2 && !strcmp(words[1], "costs"))
        costs();
    else if (count == 2 && !strcmp(words[1], "objects"))
        objects();
    else {
        errno = EINVAL;
        fail("qdisc set|show|forget|memory|salt|costs|objects");
    }
    return 0;
}
