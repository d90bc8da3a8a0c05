# tests/soak/summary.awk - is memory flat? Reads the samples of scripts/soak (t_s,process,pid,rss_kib,fds,commands), prints
# one JSON value, and exits 1 when a bound is broken. Variables: warmup_s; slope_percent, the growth of one process over
# the window that is still flat, in percent of its median; ratio_percent, the largest over the median; per_command, bytes of
# state that the broker keeps for each command by design (ids are kept for a day) and that are not a leak; extra, members
# to add to the JSON.
#
# The slope is that of the least-squares line through the samples after the warm-up. A process that was started again is another
# series: only those that live to the end and have enough samples are judged.
BEGIN { FS = "," }
NR == 1 { next }
{
    last[$2] = $3
    if ($1 < warmup_s) next
    key = $2 "," $3
    n[key]++
    x = $1; y = $4
    sx[key] += x; sy[key] += y; sxx[key] += x * x; sxy[key] += x * y
    rss[key, n[key]] = y; fds[key, n[key]] = $5
    if (n[key] == 1) { from[key] = x; first_command[key] = $6 }
    to[key] = x; last_command[key] = $6
}
function middle(values, key, count,    sorted, i, k, v) {
    for (i = 1; i <= count; i++) sorted[i] = values[key, i]
    for (i = 2; i <= count; i++) {
        v = sorted[i]
        for (k = i - 1; k >= 1 && sorted[k] > v; k--) sorted[k + 1] = sorted[k]
        sorted[k + 1] = v
    }
    return sorted[int((count + 1) / 2)]
}
function largest(values, key, count,    i, most) {
    for (i = 1; i <= count; i++) if (values[key, i] > most) most = values[key, i]
    return most
}
END {
    bad = 0
    printf "{\"version\":1,\"processes\":["
    split("broker agent client", names, " ")
    for (p = 1; p <= 3; p++) {
        name = names[p]; key = name "," last[name]; count = n[key]
        if (count < 20) { # nothing to judge is a failure, not a pass
            printf "%s{\"process\":\"%s\",\"samples\":%d,\"ok\":false}", (p > 1 ? "," : ""), name, count
            bad = 1
            continue
        }
        slope = (count * sxy[key] - sx[key] * sy[key]) / (count * sxx[key] - sx[key] * sx[key]) # KiB per second
        window = to[key] - from[key]
        commands = last_command[key] - first_command[key]
        allowance = name == "broker" ? commands * per_command / 1024 : 0
        median = middle(rss, key, count); most = largest(rss, key, count)
        fd_median = middle(fds, key, count); fd_most = largest(fds, key, count)
        growth = slope * window - allowance
        ok = growth * 100 <= slope_percent * median && most * 100 <= ratio_percent * median + allowance * 100 &&
             fd_most <= fd_median + 24
        if (!ok) bad = 1
        printf "%s{\"process\":\"%s\",\"samples\":%d,\"window_s\":%d,\"rss_median_kib\":%d,\"rss_max_kib\":%d," \
               "\"slope_kib_per_min\":%.2f,\"growth_percent\":%.2f,\"commands\":%d,\"allowance_kib\":%d," \
               "\"fds_median\":%d,\"fds_max\":%d,\"ok\":%s}", (p > 1 ? "," : ""), name, count, window, median, most,
               slope * 60, slope * window * 100 / median, commands, allowance, fd_median, fd_most, ok ? "true" : "false"
    }
    printf "],\"bounds\":{\"growth_percent\":%s,\"max_over_median_percent\":%s,\"bytes_per_command\":%s}%s,\"ok\":%s}\n",
           slope_percent, ratio_percent, per_command, extra, bad ? "false" : "true"
    exit bad
}
