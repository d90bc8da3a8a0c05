#include "base/text.h"

#include "base/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

START_TEST(hex_goes_there_and_back)
{
    char text[9];
    uint8_t bytes[4];
    text_hex("\x00\x7f\x80\xff", 4, text);
    ck_assert_str_eq(text, "007f80ff");
    ck_assert(text_unhex(text, bytes, 4));
    ck_assert_mem_eq(bytes, "\x00\x7f\x80\xff", 4);
    ck_assert(text_unhex("ABcdEF09", bytes, 4));
    ck_assert_mem_eq(bytes, "\xab\xcd\xef\x09", 4);
    text_hex("", 0, text);
    ck_assert_str_eq(text, "");
    ck_assert(text_unhex("", bytes, 0));
}
END_TEST

START_TEST(wrong_hex_is_refused_and_changes_nothing)
{
    static const char *const texts[] = {"",
                                        "0",
                                        "000",
                                        "0000 ",
                                        "0g00",
                                        "00:0",
                                        "0x00",
                                        "00000",
                                        " 0000",
                                        "+000",
                                        ("\xff"
                                         "000")};
    uint8_t bytes[2] = {7, 7};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_msg(!text_unhex(texts[i], bytes, 2), "%s", texts[i]);
    }
    ck_assert(!text_unhex("00", bytes, 0));
    ck_assert_mem_eq(bytes, "\x07\x07", 2);
}
END_TEST

START_TEST(base64_gives_the_vectors_of_rfc_4648)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t length = strlen(pairs[i][0]);
        char text[16];
        uint8_t bytes[16];
        size_t got = 99;
        text_base64(pairs[i][0], length, text);
        ck_assert_str_eq(text, pairs[i][1]);
        ck_assert_uint_eq(text_base64_size(length), strlen(text));
        ck_assert(text_unbase64(text, strlen(text), bytes, length, &got));
        ck_assert_uint_eq(got, length);
        ck_assert_mem_eq(bytes, pairs[i][0], length);
    }
}
END_TEST

START_TEST(base64_takes_one_text_for_one_value)
{
    static const char *const texts[] = {
        "Z",    "Zg",     "Zg=",   "Z===", "====",     "=Zg=",     "Zg==Zg==", "Zh==",
        "Zm9=", "Zm9v\n", "Zm9v ", "Zm-_", "Zm9vYg=a", "Zm9v====", "Zm8=Zm8=", "Z\xc3\xa9=",
    };
    uint8_t bytes[16];
    size_t length = 99;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_msg(!text_unbase64(texts[i], strlen(texts[i]), bytes, sizeof bytes, &length),
                      "%s", texts[i]);
    }
    ck_assert(!text_unbase64("Zm9v", 4, bytes, 2, &length));
    ck_assert(!text_unbase64("Zm\0v", 4, bytes, sizeof bytes, &length));
    ck_assert_uint_eq(length, 99);
}
END_TEST

START_TEST(any_base64_that_is_taken_is_what_would_be_written)
{
    static const char digits[] = "AQgw/+9z=";
    struct random random = random_seeded(64);
    unsigned taken = 0;
    for (int i = 0; i < 20000; i++) {
        char text[9] = {0};
        for (size_t k = 0; k < 8; k++) {
            text[k] = digits[random_below(&random, k < 6 ? 8 : 9)];
        }
        uint8_t bytes[6];
        size_t length;
        if (text_unbase64(text, 8, bytes, sizeof bytes, &length)) {
            char again[9];
            text_base64(bytes, length, again);
            ck_assert_str_eq(again, text);
            taken++;
        }
    }
    ck_assert_uint_gt(taken, 1000);
}
END_TEST

static void check_shown(const char *text, const char *wanted)
{
    char shown[64];
    text_printable(text, strlen(text), shown, sizeof shown);
    ck_assert_str_eq(shown, wanted);
}

START_TEST(what_could_trick_a_terminal_is_not_shown)
{
    check_shown("plain", "plain");
    check_shown("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x8e",
                "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x8e");
    check_shown("\x1b[31mred\x07", "?[31mred?");
    check_shown("a\nb\tc\rd\x7f", "a?b?c?d?");
    check_shown("\xc2\x9b"
                "31m",
                "?31m"); /* CSI as one C1 character */
    check_shown("abc\xe2\x80\xae"
                "txt.exe",
                "abc?txt.exe");                      /* right-to-left override */
    check_shown("\xe2\x81\xa6x\xe2\x81\xa9", "?x?"); /* isolates */
    check_shown("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "???");
    check_shown("a\xe2\x80\xa8"
                "b",
                "a?b"); /* line separator */
    check_shown("\xff\xfe", "??");
    check_shown("\xc0\xaf", "??");           /* overlong slash */
    check_shown("\xed\xa0\x80", "???");      /* a surrogate */
    check_shown("\xf4\x90\x80\x80", "????"); /* above U+10FFFF */
    check_shown("\xe2\x82", "??");           /* cut short */
}
END_TEST

START_TEST(a_character_is_shown_whole_or_not_at_all)
{
    char shown[4];
    text_printable("abcdef", 6, shown, sizeof shown);
    ck_assert_str_eq(shown, "abc");
    text_printable("ab\xc3\xaf", 4, shown, sizeof shown);
    ck_assert_str_eq(shown, "ab");
    text_printable("abc", 3, shown, 1);
    ck_assert_str_eq(shown, "");
    text_printable("a\0b", 3, shown, sizeof shown);
    ck_assert_str_eq(shown, "a?b");
}
END_TEST

START_TEST(utf8_is_well_formed_or_not)
{
    static const char *const bad[] = {"\x80",
                                      "\xc3",
                                      "\xc0\x80",
                                      "\xe0\x80\x80",
                                      "\xed\xbf\xbf",
                                      "\xf0\x80\x80\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80\x80",
                                      "a\xff",
                                      "\xc3\x28"};
    ck_assert(text_is_utf8("", 0));
    ck_assert_uint_eq(text_utf8_length("", 0), 0);
    ck_assert_uint_eq(text_utf8_length("ab\xff"
                                       "c",
                                       4),
                      2);
    ck_assert_uint_eq(text_utf8_length("caf\xc3", 4), 3);
    ck_assert_uint_eq(text_utf8_length("caf\xc3\xa9", 5), 5);
    ck_assert(text_is_utf8("a\0b", 3));
    ck_assert(text_is_utf8(
        "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 19));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!text_is_utf8(bad[i], strlen(bad[i])), "%zu", i);
    }
    size_t size = 0;
    ck_assert_uint_eq(text_code_point("\xe2\x82\xac!", 4, &size), 0x20ac);
    ck_assert_uint_eq(size, 3);
}
END_TEST

static void shows(const char *bytes, size_t length, const char *expected)
{
    for (size_t piece = 1; piece <= length; piece++) { /* wherever the text is cut */
        struct text_visible state = {.held_count = 0};
        char text[256];
        size_t written = 0;
        for (size_t at = 0; at < length; at += piece) {
            const size_t size = length - at < piece ? length - at : piece;
            const size_t more = text_visible(&state, bytes + at, size, text + written);
            ck_assert_uint_le(more, size * TEXT_VISIBLE_PER_BYTE + TEXT_VISIBLE_END_SIZE);
            written += more;
        }
        const size_t more = text_visible_end(&state, text + written);
        ck_assert_uint_le(more, TEXT_VISIBLE_END_SIZE);
        written += more;
        text[written] = '\0';
        ck_assert_str_eq(text, expected);
        ck_assert_uint_eq(state.held_count, 0);
    }
}

START_TEST(a_strangers_bytes_are_shown_wherever_they_are_cut)
{
    shows("plain\ttext\n", 11, "plain\ttext\n");
    shows("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", 11, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    shows("\033[31mred\033[0m", 12, "\\x1b[31mred\\x1b[0m");
    shows("\0\a\b\r\x7f", 5, "\\x00\\x07\\x08\\r\\u007f");
    shows("\xc2\x9b\xc2\x85", 4, "\\u009b\\u0085");
    shows("\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8", 11, "\\u202e\\u2066\\u061c\\u2028");
    shows("\x9b\xff\xc3", 3, "\\x9b\\xff\\xc3");
    shows("\xe2\x80z\xf0\x9f\x98", 6, "\\xe2\\x80z\\xf0\\x9f\\x98");
    shows("\xed\xa0\x80\xc0\xaf", 5, "\\xed\\xa0\\x80\\xc0\\xaf");
    shows("\xe2\x80\033", 3, "\\xe2\\x80\\x1b");
}
END_TEST

START_TEST(plain_text_has_nothing_that_misnames_a_file)
{
    static const char *const plain[] = {"", "a", "a b", "na\xc3\xafve", "\xe2\x82\xac"};
    static const char *const tricks[] = {"\n",           "\t",           "a\033",
                                         "\x7f",         "\xc2\x9b",     "\xff",
                                         "\xe2\x80\xae", "\xe2\x80\xa9", "\xe2\x80"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        ck_assert(text_is_plain(plain[i], strlen(plain[i])));
    }
    for (size_t i = 0; i < sizeof tricks / sizeof tricks[0]; i++) {
        ck_assert(!text_is_plain(tricks[i], strlen(tricks[i])));
    }
}
END_TEST

START_TEST(long_lines_are_broken_and_go_on_in_the_next)
{
    char text[512] = "";
    char expected[512] = "";
    for (int i = 0; i < 30; i++) {
        (void)strcat(text, i == 0 ? "word" : " word"); /* 149 bytes */
        (void)strcat(expected, i == 0 ? "word" : i == 20 ? "\nword" : " word");
    }
    (void)strcat(text, "\nmore of it\n\n  indented\nthe end\n");
    (void)strcat(expected, " more of it\n\n  indented\nthe end\n");
    text_wrap(text);
    ck_assert_str_eq(text, expected);
    text_wrap(text);
    ck_assert_str_eq(text, expected);

    memset(text, 'x', 300);
    (void)strcpy(text + 300, " y\n");
    text_wrap(text);
    ck_assert_uint_eq(strlen(text), 303); /* a word is not broken */
    ck_assert_uint_eq(strspn(text, "x"), 300);
    char nothing[] = "";
    text_wrap(nothing);
    ck_assert_str_eq(nothing, "");
}
END_TEST

START_TEST(near_names_are_found)
{
    static const char *const names[] = {"budget", "cap", "needs", "outputs", "memory", "at_most"};
    const size_t count = sizeof names / sizeof names[0];
    ck_assert_str_eq(text_nearest("bugdet", names, count), "budget"); /* neighbours swapped */
    ck_assert_str_eq(text_nearest("budgets", names, count), "budget");
    ck_assert_str_eq(text_nearest("memry", names, count), "memory");
    ck_assert_str_eq(text_nearest("output", names, count), "outputs");
    ck_assert_str_eq(text_nearest("atmost", names, count), "at_most");
    ck_assert_str_eq(text_nearest("cat", names, count), "cap");
    ck_assert_str_eq(text_nearest("needs", names, count), "needs");
}
END_TEST

START_TEST(far_names_are_not)
{
    static const char *const names[] = {"budget", "cap",
                                        "a_name_longer_than_forty_characters_is_skipped"};
    ck_assert_ptr_null(text_nearest("xyz", names, 3));
    ck_assert_ptr_null(text_nearest("", names, 3));
    ck_assert_ptr_null(text_nearest("cup_of_tea", names, 3));
    ck_assert_ptr_null(text_nearest("budget", names, 0));
    ck_assert_ptr_null(text_nearest("a_name_longer_than_forty_characters_is_skipped", names, 3));
}
END_TEST

START_TEST(the_nearest_of_several_wins_even_when_it_comes_last)
{
    static const char *const names[] = {"outpoot", "outputt", "output"};
    ck_assert_str_eq(text_nearest("output", names, 3), "output");
    static const char *const fields[] = {"limits", "limit"};
    ck_assert_str_eq(text_nearest("limit", fields, 2), "limit");
}
END_TEST

START_TEST(an_amount_of_bytes_is_cut_to_one_decimal_of_its_unit)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0 B"},
                 {1023, "1023 B"},
                 {1024, "1.0 KiB"},
                 {1 << 20, "1.0 MiB"},
                 {(512 << 20) - 1, "511.9 MiB"},
                 {UINT64_C(1610612736), "1.5 GiB"},
                 {UINT64_MAX, "15.9 EiB"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert_str_eq(text_size(sizes[i].bytes).text, sizes[i].text);
    }
}
END_TEST

START_TEST(a_long_text_is_cut_after_a_whole_word)
{
    char shown[16];
    text_printable_words("one two three", 13, shown, sizeof shown);
    ck_assert_str_eq(shown, "one two three");
    text_printable_words("one two three!!", 15, shown, sizeof shown);
    ck_assert_str_eq(shown, "one two three!!");
    text_printable_words("one two three four", 18, shown, sizeof shown);
    ck_assert_str_eq(shown, "one two...");
    text_printable_words("one two four five six", 21, shown, sizeof shown);
    ck_assert_str_eq(shown, "one two four...");
    text_printable_words("onetwothreefourfive", 19, shown, sizeof shown);
    ck_assert_str_eq(shown, "onetwothreef...");
    text_printable_words("a\nb\xff two words more", 20, shown, sizeof shown);
    ck_assert_str_eq(shown, "a?b? two...");
}
END_TEST

SUITE("text", NULL, NULL, TEST(hex_goes_there_and_back),
      TEST(wrong_hex_is_refused_and_changes_nothing), TEST(base64_gives_the_vectors_of_rfc_4648),
      TEST(base64_takes_one_text_for_one_value),
      TEST(any_base64_that_is_taken_is_what_would_be_written),
      TEST(what_could_trick_a_terminal_is_not_shown),
      TEST(a_character_is_shown_whole_or_not_at_all), TEST(utf8_is_well_formed_or_not),
      TEST(a_strangers_bytes_are_shown_wherever_they_are_cut),
      TEST(plain_text_has_nothing_that_misnames_a_file),
      TEST(long_lines_are_broken_and_go_on_in_the_next), TEST(near_names_are_found),
      TEST(an_amount_of_bytes_is_cut_to_one_decimal_of_its_unit),
      TEST(a_long_text_is_cut_after_a_whole_word), TEST(far_names_are_not),
      TEST(the_nearest_of_several_wins_even_when_it_comes_last))
