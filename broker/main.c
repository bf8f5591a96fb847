/* stepdown-broker: arguments, signals, and the control loop on the main thread. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "base/slog.h"
#include "config.h"
#include "server.h"

#define MAX_OVERRIDES     64
#define EXIT_SESSION_LOST 75 /* EX_TEMPFAIL: another start may do */

static const char usage[] =
        "Usage: stepdown-broker [--config FILE] [--set KEY=VALUE]...\n"
        "\n"
        "A replicated, Kafka-compatible message broker. SIGTERM hands leadership of every partition to "
        "in-sync\n"
        "replicas and then stops; a second SIGTERM stops at once.\n"
        "\n"
        "  --config FILE      configuration in YAML; keys also come from the environment as STEPDOWN_KEY\n"
        "  --set KEY=VALUE    override one key; may be repeated\n"
        "  --check-config     read the configuration, say what is wrong with it, and exit\n"
        "  --help-config      list every key with its default\n"
        "  --help             this text\n"
        "  --version\n"
        "\n"
        "Exit status: 0 stopped as asked, 1 failed, 64 the command line or the configuration is wrong, 75 "
        "the\n"
        "ZooKeeper session was lost and is not, or could not be, replaced.\n";

struct arguments {
        const char *config;
        const char *overrides[MAX_OVERRIDES + 1];
        size_t n_overrides;
        bool check;
};

enum { OPT_CONFIG = 1, OPT_SET, OPT_CHECK, OPT_HELP_CONFIG, OPT_HELP, OPT_VERSION };

static const struct option options[] = {
        {"config", required_argument, NULL, OPT_CONFIG},
        {"set", required_argument, NULL, OPT_SET},
        {"check-config", no_argument, NULL, OPT_CHECK},
        {"help-config", no_argument, NULL, OPT_HELP_CONFIG},
        {"help", no_argument, NULL, OPT_HELP},
        {"version", no_argument, NULL, OPT_VERSION},
        {NULL, 0, NULL, 0},
};

/* Returns -1 to go on, else the exit status. */
static int parse_arguments(int argc, char **argv, struct arguments *a)
{
        for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                switch (o) {
                case OPT_CONFIG:
                        a->config = optarg;
                        break;
                case OPT_SET:
                        if (a->n_overrides == MAX_OVERRIDES) {
                                fprintf(stderr, "stepdown-broker: --set may be given %d times\n",
                                        MAX_OVERRIDES);
                                return 64;
                        }
                        a->overrides[a->n_overrides++] = optarg;
                        break;
                case OPT_CHECK:
                        a->check = true;
                        break;
                case OPT_HELP_CONFIG:
                        broker_config_print_help();
                        return 0;
                case OPT_HELP:
                        fputs(usage, stdout);
                        return 0;
                case OPT_VERSION:
                        puts("stepdown-broker " STEPDOWN_VERSION);
                        return 0;
                default:
                        fputs("Try 'stepdown-broker --help'.\n", stderr);
                        return 64;
                }
        }
        if (optind < argc) {
                fprintf(stderr, "stepdown-broker: '%s' is not an option\nTry 'stepdown-broker --help'.\n",
                        argv[optind]);
                return 64;
        }
        return -1;
}

struct process {
        struct loop *loop;
        struct server *server;
        int signal_fd;
};

static int on_signal(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct process *p = userdata;
        struct signalfd_siginfo si;

        (void)l;
        (void)events;
        if (read(fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
                return 0;
        if (si.ssi_signo == SIGHUP)
                slog_notice("reload-ignored",
                            "no setting of the broker can be reloaded; restart it to change one");
        else
                server_stop(p->server, strsignal((int)si.ssi_signo));
        return 0;
}

static int block_signals(struct process *p)
{
        struct loop_fd *source;
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        (void)signal(SIGPIPE, SIG_IGN);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        p->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (p->signal_fd < 0)
                return -errno;
        return loop_add_fd(p->loop, p->signal_fd, EPOLLIN, on_signal, p, &source);
}

/* A partition has a file of its own: the soft limit of 1,024 would end a broker of any size. */
static void raise_file_limit(void)
{
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
                l.rlim_cur = l.rlim_max;
                (void)setrlimit(RLIMIT_NOFILE, &l); /* then the old limit holds */
        }
}

static int run(const struct broker_config *c)
{
        struct process p = {.signal_fd = -1};
        int r;

        r = loop_new("control", &p.loop);
        if (r == 0)
                r = block_signals(&p);
        if (r == 0)
                r = server_new(p.loop, c, &p.server);
        if (r < 0) {
                slog_error("start-failed", "the broker could not start", SL_ERR(r));
        } else {
                r = loop_run(p.loop);
                if (r == 0)
                        r = server_result(p.server);
        }
        p.server = server_free(p.server);
        p.loop = loop_free(p.loop);
        closep(&p.signal_fd);
        if (r == -EOWNERDEAD)
                return EXIT_SESSION_LOST;
        return r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
        struct arguments a = {0};
        struct broker_config c = {0};
        cleanup_with(freep) char *error = NULL;
        int r;

        r = parse_arguments(argc, argv, &a);
        if (r >= 0)
                return r;
        slog_init("stepdown-broker");
        if (broker_config_load(a.config, a.overrides, &c, &error) < 0) {
                fprintf(stderr, "stepdown-broker: %s\n",
                        error ? error : "the configuration could not be read");
                broker_config_done(&c);
                return 64;
        }
        raise_file_limit();
        if (a.check)
                puts("configuration is valid");
        else
                r = run(&c);
        broker_config_done(&c);
        return a.check ? 0 : r;
}
