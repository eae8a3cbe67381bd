// SPDX-License-Identifier: Apache-2.0
// The lab's hand in the guest: runs shell scripts that arrive on a virtio serial port and answers
// with their output.
//
//   host → guest   RUN <id> <timeout ms> <script bytes> <input bytes>\n  script  input
//   guest → host   READY\n                                               once, at start
//   guest → host   RES <id> <exit|signal|timeout|flood> <n> <bytes>\n  output
//
// Several commands may run at once. Output goes to a memory file, not a pipe: a background process
// that keeps it open delays nothing, and no copying is needed while CPU is short.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum {
  MAX_JOBS = 32,
  MAX_SCRIPT = 128 << 10,  // the kernel's limit for one argument (MAX_ARG_STRLEN)
  MAX_OUTPUT = 64 << 20,   // more is a runaway loop, and memory the test wanted
  LOOK_EVERY_MS = 200,     // how often the size of outputs is checked
};

struct job {
  char id[24];
  pid_t pid;  // also its process group and session; 0: this slot is free
  int pidfd;
  int output;
  long long deadline;     // ms of the monotonic clock
  const char* killed_as;  // why we killed it, or NULL
};

static struct job jobs[MAX_JOBS];
static int port;

static void die(const char* doing) {
  perror(doing);
  exit(1);
}

static long long now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

// As the machine resumes, the port is a moment without its host: POLLHUP, and read() returns 0.
static void await_host(void) {
  usleep(10000);
}

static void read_all(char* to, size_t size) {
  while (size > 0) {
    ssize_t got = read(port, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) die("read the port");
    if (got == 0) await_host();
    to += got;
    size -= (size_t)got;
  }
}

static void write_all(int fd, const char* from, size_t size) {
  while (size > 0) {
    ssize_t put = write(fd, from, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) die("write");
    from += put;
    size -= (size_t)put;
  }
}

static void open_port(const char* path) {
  port = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (port < 0) die(path);
  struct termios raw;
  if (tcgetattr(port, &raw) == 0) {
    cfmakeraw(&raw);
    raw.c_cflag |= CLOCAL;
    cfsetspeed(&raw, B115200);
    if (tcsetattr(port, TCSANOW, &raw) < 0) die("make the port raw");
  }
}

static int memory_file(const char* name) {
  int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) die("memfd_create");
  return fd;
}

static void answer(const char* id, const char* how, int n, int output) {
  struct stat now;
  if (fstat(output, &now) < 0) die("fstat");
  off_t left = now.st_size < MAX_OUTPUT ? now.st_size : MAX_OUTPUT;
  char chunk[65536];
  int head = snprintf(chunk, sizeof chunk, "RES %s %s %d %lld\n", id, how, n, (long long)left);
  write_all(port, chunk, (size_t)head);
  for (off_t at = 0; left > 0;) {
    size_t part = left < (off_t)sizeof chunk ? (size_t)left : sizeof chunk;
    ssize_t got = pread(output, chunk, part, at);
    if (got <= 0)
      memset(chunk, 0, part), got = (ssize_t)part;  // cut short meanwhile: the count was promised
    write_all(port, chunk, (size_t)got);
    at += got;
    left -= got;
  }
}

// The command is an ordinary process: the kernel may choose it, unlike us, and it gets no priority
// beyond our slice.
static void become_command(const char* script, int input, int output) {
  setsid();
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) write_all(score, "0", 1);
  if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(126);
  if (chdir("/root") < 0) _exit(126);
  char* env[] = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/headroom/bin",
      "HOME=/root",
      "TERM=dumb",
      "LC_ALL=C.UTF-8",
      "SYSTEMD_PAGER=",
      "SYSTEMD_COLORS=0",
      NULL};
  execle("/bin/sh", "sh", "-c", script, (char*)NULL, env);
  _exit(127);
}

static struct job* free_job(void) {
  for (struct job* j = jobs; j < jobs + MAX_JOBS; j++)
    if (j->pid == 0) return j;
  return NULL;
}

static void start(const char* id, long long timeout, const char* script, int input) {
  int output = memory_file("output");
  if (fcntl(output, F_SETFL, O_APPEND) < 0) die("append to the output");
  struct job* job = free_job();
  pid_t pid = job ? fork() : -1;
  if (pid == 0) become_command(script, input, output);
  if (pid < 0) {
    dprintf(output, "lab-agent: cannot start: %s\n",
            job ? strerror(errno) : "too many commands at once");
    answer(id, "exit", 126, output);
    close(output);
    return;
  }
  int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0) die("pidfd_open");
  *job = (struct job){.pid = pid, .pidfd = pidfd, .output = output, .deadline = now_ms() + timeout};
  snprintf(job->id, sizeof job->id, "%s", id);
}

static void take_request(void) {
  char line[160];
  size_t used = 0;
  do {
    if (used == sizeof line - 1) used = 0;  // noise: look for the next line
    read_all(line + used, 1);
  } while (line[used++] != '\n');
  line[used] = 0;
  char id[24];
  long long timeout;
  size_t script_bytes, input_bytes;
  if (sscanf(line, "RUN %23s %lld %zu %zu", id, &timeout, &script_bytes, &input_bytes) != 4) return;
  if (script_bytes >= MAX_SCRIPT) die("script too long");

  static char script[MAX_SCRIPT];
  read_all(script, script_bytes);
  script[script_bytes] = 0;
  int input = memory_file("input");
  for (char chunk[65536]; input_bytes > 0;) {
    size_t part = input_bytes < sizeof chunk ? input_bytes : sizeof chunk;
    read_all(chunk, part);
    write_all(input, chunk, part);
    input_bytes -= part;
  }
  lseek(input, 0, SEEK_SET);
  start(id, timeout, script, input);
  close(input);
}

static void finish(struct job* job) {
  // Before the leader is reaped its number cannot be another group's: whatever it left behind goes
  // with it.
  kill(-job->pid, SIGKILL);
  int status = 0;
  while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR) {
  }
  int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (job->killed_as) {
    answer(job->id, job->killed_as, signal, job->output);
  } else if (signal) {
    answer(job->id, "signal", signal, job->output);
  } else {
    answer(job->id, "exit", WEXITSTATUS(status), job->output);
  }
  close(job->pidfd);
  close(job->output);
  job->pid = 0;
}

static void kill_overdue(struct job* job, long long now) {
  struct stat written;
  if (job->killed_as) return;
  if (now >= job->deadline) job->killed_as = "timeout";
  if (fstat(job->output, &written) == 0 && written.st_size > MAX_OUTPUT) job->killed_as = "flood";
  if (job->killed_as) kill(-job->pid, SIGKILL);
}

int main(int argc, char** argv) {
  open_port(argc > 1 ? argv[1] : "/dev/vport0p1");
  if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0) die("mlockall");
  write_all(port, "READY\n", 6);
  for (;;) {
    struct pollfd watched[1 + MAX_JOBS] = {{.fd = port, .events = POLLIN}};
    int busy = 0;
    for (int i = 0; i < MAX_JOBS; i++) {
      watched[1 + i] = (struct pollfd){.fd = jobs[i].pid ? jobs[i].pidfd : -1, .events = POLLIN};
      busy |= jobs[i].pid != 0;
    }
    if (poll(watched, 1 + MAX_JOBS, busy ? LOOK_EVERY_MS : -1) < 0 && errno != EINTR) die("poll");
    for (int i = 0; i < MAX_JOBS; i++)
      if (watched[1 + i].revents && jobs[i].pid) finish(&jobs[i]);
    for (int i = 0; i < MAX_JOBS; i++)
      if (jobs[i].pid) kill_overdue(&jobs[i], now_ms());
    if (watched[0].revents & POLLIN)
      take_request();
    else if (watched[0].revents)
      await_host();
  }
}
