"""Threads that are protected from the other work of their processor, as the kernel says."""

import asyncio
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import unittest

from cutline import socket
from cutline.socket import SOCK_DGRAM

# A peer that takes part has a minute: a thread of a busy machine may have no turn for seconds.
QUICK = {"negotiation.first-timeout": "20 ms", "negotiation.give-up": "60 s", "detection": "60 s",
         "monitor.interval": "20 ms"}
CAP_SYS_NICE = 23
"""The bit in /proc (linux/capability.h)."""


def may_protect():
    with open("/proc/thread-self/status") as status:
        effective = next(line for line in status if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> CAP_SYS_NICE & 1)


def scheduling(thread=0):
    """Policy, priority and nice of a thread."""
    return os.sched_getscheduler(thread), os.sched_getparam(thread).sched_priority, os.getpriority(os.PRIO_PROCESS, thread)


def is_raised(priority, thread=0):
    policy, real_time, nice = scheduling(thread)
    if priority == "real-time":
        return (policy, real_time) == (os.SCHED_RR | os.SCHED_RESET_ON_FORK, 1)
    return policy == os.SCHED_OTHER | os.SCHED_RESET_ON_FORK and nice <= -10


def in_thread(function):
    """Result of a function in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@unittest.skipUnless(may_protect(), "it needs CAP_SYS_NICE: run the tests as root")
class Protection(unittest.TestCase):
    def setUp(self):
        self.before = scheduling()
        self.addCleanup(lambda: self.assertEqual(scheduling(), self.before))

    def test_a_thread_is_protected_in_the_block_alone(self):
        for wanted in ("highest", "real-time", "nice"):
            with socket.protected_thread(wanted) as priority:
                self.assertIn(priority, ("real-time", "nice") if wanted == "highest" else (wanted,))
                self.assertTrue(is_raised(priority), scheduling())
                # Threads and processes that it starts are not protected.
                policy, _, nice = in_thread(scheduling)
                self.assertEqual((policy, max(nice, 0)), (os.SCHED_OTHER, nice))
                program = "import os; print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0) >= 0)"
                found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
                self.assertEqual(found.stdout, f"{os.SCHED_OTHER} True\n")
            self.assertEqual(scheduling(), self.before)

    def test_an_exception_ends_it(self):
        for raised in (ValueError("on purpose"), KeyboardInterrupt(), SystemExit(3)):
            with self.assertRaises(type(raised)), socket.protected_thread() as priority:
                self.assertTrue(is_raised(priority))
                raise raised
            self.assertEqual(scheduling(), self.before)

    def test_a_function_can_be_protected(self):
        @socket.protected_thread("real-time")
        def receive(depth):
            return is_raised("real-time"), depth

        for depth in range(2):
            self.assertEqual(receive(depth), (True, depth))
            self.assertEqual(scheduling(), self.before)

    def test_a_thread_is_protected_once_at_a_time(self):
        with socket.protected_thread() as priority:
            for again in ("highest", "nice"):
                with self.assertRaisesRegex(RuntimeError, "this thread is protected already"):
                    with socket.protected_thread(again):
                        self.fail("it is protected twice")
                self.assertTrue(is_raised(priority))

            def another():
                with socket.protected_thread() as own:
                    return is_raised(own)

            self.assertTrue(in_thread(another))
            self.assertTrue(is_raised(priority))

    def test_another_thread_cannot_end_it(self):
        def leave(block):
            try:
                # It has one of its own, which remains.
                with socket.protected_thread() as own:
                    try:
                        block.__exit__(None, None, None)
                    finally:
                        self.assertTrue(is_raised(own))
            except RuntimeError as error:
                return str(error)

        def enter():
            block = socket.protected_thread()
            priority = block.__enter__()
            return in_thread(lambda: leave(block)), is_raised(priority)

        said, remains = in_thread(enter)
        self.assertIn("in the thread where it has begun", said)
        # It remains until the end of its thread.
        self.assertTrue(remains)

    def test_the_thread_of_the_library_follows(self):
        with socket.create_server(("127.0.0.1", 0), type=SOCK_DGRAM, options=QUICK) as server:
            accepted = []
            thread = threading.Thread(target=lambda: accepted.append(server.accept()[0]))
            thread.start()
            with socket.create_connection(server.getsockname(), type=SOCK_DGRAM, options=QUICK, timeout=60):
                thread.join()
                self.raised(0)
                with socket.protected_thread("real-time"):
                    self.raised(2)
                self.raised(0)
                accepted[0].close()

    def raised(self, count):
        """Waits until so many threads have real-time scheduling."""
        until = time.monotonic() + 60
        while True:
            threads = map(int, os.listdir("/proc/self/task"))
            found = [thread for thread in threads if scheduling(thread)[0] & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR]
            if len(found) == count:
                return
            self.assertLess(time.monotonic(), until, found)
            time.sleep(0.01)

    def test_a_loop_receives_in_a_protected_thread(self):
        async def receive():
            async with await socket.start_server(
                    lambda reader, writer: readers.put_nowait(reader), ("127.0.0.1", 0), type=SOCK_DGRAM, options=QUICK) as server:
                _, writer = await socket.open_connection(server.getsockname(), type=SOCK_DGRAM, options=QUICK)
                with socket.protected_thread() as priority:
                    writer.write(b"a message")
                    reader = await asyncio.wait_for(readers.get(), 60)
                    message = await asyncio.wait_for(reader.read(), 60)
                    found = message, is_raised(priority)
                writer.close()
                server.close()
                server.abort_clients()
                return found

        readers = asyncio.Queue()
        self.assertEqual(asyncio.run(receive()), (b"a message", True))

    def test_without_the_capability_protection_is_refused_without_effect(self):
        program = textwrap.dedent("""
            import errno, os
            from cutline import socket
            def scheduling():
                return os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
            before = scheduling()
            for priority in ("highest", "real-time", "nice"):
                try:
                    with socket.protected_thread(priority):
                        print("protected")
                except PermissionError as error:
                    print(error.errno in (errno.EPERM, errno.EACCES), "CAP_SYS_NICE" in str(error), scheduling() == before)
            """)
        self.assertIsNotNone(shutil.which("setpriv"))
        without = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
        found = subprocess.run([*without, sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((found.stdout, found.stderr), ("True True True\n" * 3, ""))

    def test_priorities_that_do_not_exist_are_named(self):
        for wrong in ("", "fifo"):
            with self.assertRaisesRegex(ValueError, 'allowed are "highest", "real-time", "nice"'):
                with socket.protected_thread(wrong):
                    self.fail("it is protected")


if __name__ == "__main__":
    unittest.main()
