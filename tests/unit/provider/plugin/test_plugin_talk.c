/* The tests talk with a plug-in that may be late, silent, dead or talkative. */
#include "provider/plugin/plugin_product.h"
#include "provider/plugin/session.h"

#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char script[64];
static struct talk talk;
static struct problem problem;
static char line[PLUGIN_LINE_BYTES];
static size_t length;

static void begin(void)
{
    (void)snprintf(script, sizeof script, "/tmp/bourse-talk-XXXXXX");
    (void)signal(SIGPIPE, SIG_IGN); /* as bourse-plugin has it */
    problem.text[0] = '\0';
    const int file = mkstemp(script);
    ck_assert_int_ge(file, 0);
    (void)close(file);
}

static void end(void)
{
    talk_end(&talk);
    (void)unlink(script);
}

static void write_script(const char *text)
{
    FILE *file = fopen(script, "w");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "#!/bin/sh\n%s\n", text);
    (void)fclose(file);
    (void)chmod(script, 0700);
}

static void start(const char *text)
{
    write_script(text);
    ck_assert_msg(talk_start(script, &talk, &problem), "%s", problem.text);
}

static bool ask(int limit_ms)
{
    return talk_ask(&talk, "{}\n", 3, limit_ms, line, &length, &problem);
}

START_TEST(each_request_has_its_answer)
{
    start("while read -r request; do echo \"got $request\"; done");
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(ask(60000), "%s", problem.text);
        ck_assert_uint_eq(length, 6);
        ck_assert(memcmp(line, "got {}\n", 7) == 0);
        ck_assert(talk_is_ready(&talk));
    }
}
END_TEST

START_TEST(an_answer_that_is_late_ends_the_plugin)
{
    start("read -r request; exec sleep 1000");
    ck_assert(!ask(50));
    ck_assert_str_eq(problem.text, "the plug-in says nothing for 0.050 s");
    ck_assert(talk.pid == 0 && !talk_is_ready(&talk));
}
END_TEST

START_TEST(half_a_line_is_no_answer)
{
    start("read -r request; printf '{'; exec sleep 1000");
    ck_assert(!ask(100));
    ck_assert_str_eq(problem.text, "the plug-in says nothing for 0.100 s");
}
END_TEST

START_TEST(a_plugin_that_ends_is_told_by_its_end)
{
    start("exit 9");
    ck_assert(!ask(60000));
    ck_assert_str_eq(problem.text, "the plug-in has ended with status 9");
    start("kill -ABRT $$");
    ck_assert(!ask(60000));
    ck_assert_ptr_nonnull(strstr(problem.text, "the plug-in was ended by signal 6"));
    start("read -r request; echo yes; exit 0");
    ck_assert(ask(60000));
    ck_assert(!ask(60000)); /* a session finds that out before it asks */
    ck_assert_str_eq(problem.text, "the plug-in has ended with status 0");
}
END_TEST

START_TEST(more_than_was_asked_ends_the_plugin)
{
    start("read -r request; printf 'a\\nb\\n'; exec sleep 1000");
    ck_assert(!ask(60000));
    ck_assert_str_eq(problem.text, "the plug-in says more than one line to one request");
    start("read -r request; head -c 70000 /dev/zero; exec sleep 1000");
    ck_assert(!ask(60000));
    ck_assert_str_eq(problem.text, "the plug-in's answer is longer than 65536 bytes");
    start("echo unasked; exec sleep 1000");
    for (int i = 0; talk_is_ready(&talk); i++) { /* until the line is there */
        ck_assert_int_lt(i, 60000);
        (void)usleep(1000);
    }
    ck_assert_int_eq(talk.pid, 0);
}
END_TEST

START_TEST(a_program_that_cannot_start_says_why)
{
    ck_assert(!talk_start("/no/such/plugin", &talk, &problem));
    ck_assert_str_eq(problem.text, "the plug-in does not start: No such file or directory");
    ck_assert_int_eq(talk.pid, 0);
}
END_TEST

#define DESCRIBES                                                                                  \
    "*describe*) echo '{\"bourse\":1,\"name\":\"a\",\"kind\":\"dsp\",\"vendor\":\"b\",\"model\":"  \
    "\"c\",\"operations\":[\"once\",\"many\"]}';;\n"

START_TEST(a_plugin_that_has_ended_is_started_anew)
{
    struct session session = {.program = script};
    struct plugin_result result;
    write_script("n=0\nwhile read -r request; do case $request in\n" DESCRIBES
                 "*once*) echo '{\"status\":0}'; exit 0;;\n"
                 "*many*) n=$((n+1)); echo \"{\\\"status\\\":0,\\\"text\\\":\\\"$n\\\"}\";;\n"
                 "*) echo '{\"status\":0}';;\n" /* whatever else it is asked for */
                 "esac; done");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(session_run(&session, "many", NULL, 0, &result, &problem), SESSION_DONE);
        ck_assert_str_eq(result.text, "1");
        ck_assert_int_eq(session_run(&session, "many", NULL, 0, &result, &problem), SESSION_DONE);
        ck_assert_str_eq(result.text, "2");
        ck_assert(session_peak_bytes(&session) > 0);
        const pid_t pid = session.talk.pid;
        ck_assert_int_eq(session_run(&session, "once", NULL, 0, &result, &problem), SESSION_DONE);
        ck_assert_int_eq(session.talk.pid, pid);
        while (talk_is_ready(&session.talk)) { /* until it has ended */
            (void)usleep(1000);
        }
    }
    ck_assert_int_eq(session_run(&session, "all", NULL, 0, &result, &problem), SESSION_FAILED);
    ck_assert_str_eq(problem.text, "the plug-in has no operation \"all\"; it has once, many");
    session_end(&session);
}
END_TEST

/* Writes a plug-in that multiplies, in Perl. It adds `first` to the first sum, and writes the file
 * `product`. */
static void write_multiplier(const char *first, const char *product)
{
    char text[2048];
    (void)snprintf(
        text, sizeof text,
        "exec perl -e '\n"
        "sub load { local $/; open my $file, \"<:raw\", $_[0] or die; [unpack \"f*\", <$file>] }\n"
        "$| = 1;\n"
        "while (my $line = <STDIN>) {\n"
        "    if ($line =~ /describe/) {\n"
        "        print "
        "q({\"bourse\":1,\"name\":\"a\",\"kind\":\"dsp\",\"vendor\":\"b\",\"model\":\"c\",\n"
        "\"operations\":[\"fft\"],\"challenge\":\"gemm_fp32\"}) =~ tr/\\n//dr, \"\\n\";\n"
        "        next;\n"
        "    }\n"
        "    my ($n) = $line =~ /\"side\":(\\d+)/;\n"
        "    my ($left, $right) = (load(\"left.f32\"), load(\"right.f32\"));\n"
        "    my @sums = (0) x ($n * $n);\n"
        "    for my $place (0 .. $n * $n * $n - 1) {\n"
        "        my ($i, $k, $j) = (int($place / $n / $n), $place / $n %% $n, $place %% $n);\n"
        "        $sums[$i * $n + $j] += $left->[$i * $n + $k] * $right->[$k * $n + $j];\n"
        "    }\n"
        "    $sums[0] += %s;\n"
        "    open my $file, \">:raw\", \"%s\" or die;\n"
        "    print $file pack \"f*\", @sums;\n"
        "    close $file;\n"
        "    print \"{\\\"status\\\":0}\\n\";\n"
        "}'",
        first, product);
    write_script(text);
}

START_TEST(a_product_is_taken_when_every_sum_is_right)
{
    struct session session = {.program = script};
    char folder[] = "/tmp/bourse-product-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    write_multiplier("0", PLUGIN_PRODUCT);
    ck_assert_msg(plugin_product_try(&session, &problem), "%s", problem.text);
    const pid_t pid = session.talk.pid;
    ck_assert(plugin_product_try(&session, &problem));
    ck_assert_int_eq(session.talk.pid, pid); /* one process for all products */
    session_end(&session);
    write_multiplier("1", PLUGIN_PRODUCT);
    ck_assert(!plugin_product_try(&session, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "the plug-in's product is wrong: row 0, column 0"));
    session_end(&session);
    write_multiplier("0", "other.f32");
    ck_assert(!plugin_product_try(&session, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "product.f32 is no file of 16384 bytes"));
    session_end(&session);
    write_script("while read -r request; do case $request in\n" DESCRIBES
                 "*) echo '{\"status\":0}';; esac; done");
    ck_assert(!plugin_product_try(&session, &problem));
    ck_assert_str_eq(problem.text, "the plug-in has no challenge \"gemm_fp32\" any more");
    session_end(&session);
    ck_assert_int_eq(unlink("other.f32"), 0);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left in it */
}
END_TEST

/* Asks, and cancels the request from the beginning. */
static bool ask_cancelled(bool takes_cancel)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    const struct talk_cancel cancel = {
        .fd = ends[0], .line = takes_cancel ? "stop\n" : NULL, .length = takes_cancel ? 5 : 0};
    const bool good =
        talk_ask_or_cancel(&talk, "go\n", 3, TALK_NO_LIMIT, &cancel, line, &length, &problem);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return good;
}

START_TEST(a_plug_in_that_takes_a_cancel_goes_on)
{
    start("read -r go; read -r stop; echo \"$go, $stop\"; read -r go; echo \"and $go\"");
    ck_assert_msg(ask_cancelled(true), "%s", problem.text);
    ck_assert_uint_eq(length, 8);
    ck_assert_int_eq(memcmp(line, "go, stop", 8), 0);
    ck_assert(talk_is_ready(&talk));
    ck_assert_msg(ask(60000), "%s", problem.text);
    ck_assert_int_eq(memcmp(line, "and {}", 6), 0);
}
END_TEST

START_TEST(a_plug_in_that_ignores_a_cancel_is_killed_after_a_while)
{
    start("read -r go; exec sleep 1000");
    ck_assert(!ask_cancelled(true));
    ck_assert_str_eq(problem.text, "the plug-in says nothing for 2.000 s");
    ck_assert_int_eq(talk.pid, 0);
}
END_TEST

START_TEST(a_plug_in_that_knows_no_cancel_is_killed_at_once)
{
    start("read -r go; exec sleep 1000");
    ck_assert(!ask_cancelled(false));
    ck_assert_str_eq(problem.text, "cancelled, and the plug-in was ended");
    ck_assert_int_eq(talk.pid, 0);
}
END_TEST

SUITE("plugin_talk", begin, end, TEST(each_request_has_its_answer),
      TEST(an_answer_that_is_late_ends_the_plugin), TEST(half_a_line_is_no_answer),
      TEST(a_plugin_that_ends_is_told_by_its_end), TEST(more_than_was_asked_ends_the_plugin),
      TEST(a_program_that_cannot_start_says_why), TEST(a_plugin_that_has_ended_is_started_anew),
      TEST(a_plug_in_that_takes_a_cancel_goes_on),
      TEST(a_plug_in_that_ignores_a_cancel_is_killed_after_a_while),
      TEST(a_plug_in_that_knows_no_cancel_is_killed_at_once),
      TEST(a_product_is_taken_when_every_sum_is_right))
