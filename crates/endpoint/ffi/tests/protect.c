/* A thread is protected, as the kernel says, until it ends that; others cannot. */
#define _GNU_SOURCE
#include <cutline.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int policy(void)
{
    return sched_getscheduler(0);
}

static int nice_of_thread(void)
{
    return getpriority(PRIO_PROCESS, 0);
}

static int policy_before, nice_before;

static int is_as_before(void)
{
    return policy() == policy_before && nice_of_thread() == nice_before;
}

/* True for a thread or a process that a protected one has started. */
static int is_reset(void)
{
    return policy() == SCHED_OTHER && nice_of_thread() >= 0;
}

/* What the kernel says about a thread of this priority. */
static int is_raised(int priority)
{
    return priority == CUTLINE_THREAD_PRIORITY_REAL_TIME ? policy() == (SCHED_RR | SCHED_RESET_ON_FORK)
                                                         : nice_of_thread() <= -10;
}

static void *another_thread(void *unused)
{
    (void)unused;
    CHECK(is_reset());
    CHECK(cutline_unprotect_thread() == -1 && errno == EINVAL && cutline_error_code() == CUTLINE_ERROR_ARGUMENT);
    CHECK(strstr(cutline_error(), "in the thread where it has begun"));
    /* Each thread has its own; the end of the thread ends it. */
    CHECK(cutline_protect_thread(CUTLINE_THREAD_PRIORITY_HIGHEST) > 0);
    return NULL;
}

static void refused(void)
{
    CHECK(cutline_protect_thread(3) == -1 && errno == EINVAL && cutline_error_code() == CUTLINE_ERROR_ARGUMENT);
    CHECK(strstr(cutline_error(), "priority = 3: allowed are "));
    int priorities[3] = {CUTLINE_THREAD_PRIORITY_HIGHEST, CUTLINE_THREAD_PRIORITY_REAL_TIME,
                         CUTLINE_THREAD_PRIORITY_NICE};
    for (int place = 0; place < 3; place++) {
        CHECK(cutline_protect_thread(priorities[place]) == -1 && (errno == EPERM || errno == EACCES));
        CHECK(cutline_error_code() == CUTLINE_ERROR_SYSTEM && strstr(cutline_error(), "CAP_SYS_NICE"));
        CHECK(is_as_before());
    }
}

int main(int count, char **words)
{
    policy_before = policy();
    nice_before = nice_of_thread();
    CHECK(cutline_unprotect_thread() == -1 && errno == EINVAL);
    if (count == 2 && strcmp(words[1], "refused") == 0) {
        refused();
        printf("refused\n");
        return 0;
    }
    int priorities[3] = {CUTLINE_THREAD_PRIORITY_HIGHEST, CUTLINE_THREAD_PRIORITY_REAL_TIME,
                         CUTLINE_THREAD_PRIORITY_NICE};
    for (int place = 0; place < 3; place++) {
        int had = cutline_protect_thread(priorities[place]);
        CHECK(had > 0 && (place == 0 || had == priorities[place]) && is_raised(had));
        CHECK(cutline_protect_thread(CUTLINE_THREAD_PRIORITY_HIGHEST) == -1 && errno == EBUSY);
        CHECK(cutline_error_code() == CUTLINE_ERROR_ARGUMENT && is_raised(had));
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, another_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
        CHECK(is_raised(had));
        /* A child is not protected; it may protect itself, and ending that does nothing here. */
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK(is_reset());
            CHECK(is_raised(cutline_protect_thread(priorities[place])));
            CHECK(cutline_unprotect_thread() == 0);
            CHECK(is_reset());
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(is_raised(had));
        CHECK(cutline_unprotect_thread() == 0);
        CHECK(is_as_before());
        CHECK(cutline_unprotect_thread() == -1 && errno == EINVAL);
    }
    /* One that lasts until the end of the process. */
    CHECK(cutline_protect_thread(CUTLINE_THREAD_PRIORITY_HIGHEST) > 0);
    printf("protected\n");
    return 0;
}
