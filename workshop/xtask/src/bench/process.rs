//! A child process and the CPU time it used, from `/proc` (Linux).

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Ticks of `/proc/PID/stat` on Linux: 10 ms on every architecture (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// End of a process.
pub(super) enum End {
    Exit(ExitStatus),
    /// Killed at its limit.
    TimedOut,
}

/// Process that has ended.
pub(super) struct Finished {
    pub(super) end: End,
    pub(super) cpu: Duration,
    pub(super) stderr: String,
}

/// Runs a command without input to its end. `on_line` sees every line of stdout and the CPU time used until then.
pub(super) fn measure(
    command: &mut Command,
    limit: Duration,
    on_line: &mut dyn FnMut(&str, Duration),
) -> Result<Finished> {
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} did not start", command.get_program().to_string_lossy()))?;
    let stderr = child.stderr.take().map(|pipe| thread::spawn(move || read_all(pipe)));
    let done = match follow(&mut child, deadline, on_line) {
        Ok(done) => done,
        Err(error) => {
            // Nothing is left running behind an error.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
    };
    let cpu = cpu_time(child.id()).context("CPU time needs /proc of Linux")?;
    if !done {
        child.kill()?;
    }
    let status = child.wait()?;
    let end = if done { End::Exit(status) } else { End::TimedOut };
    let stderr = stderr.and_then(|reader| reader.join().ok()).unwrap_or_default();
    Ok(Finished { end, cpu, stderr })
}

/// Passes lines on until the process is over but not yet reaped; returns false at the deadline.
fn follow(child: &mut Child, deadline: Instant, on_line: &mut dyn FnMut(&str, Duration)) -> Result<bool> {
    let stdout = child.stdout.take().context("no stdout")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let cpu = cpu_time(child.id()).context("CPU time needs /proc of Linux")?;
                on_line(&String::from_utf8_lossy(&line), cpu);
            }
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    while !is_over(child.id())? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // What came before a broken pipe is still worth showing.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns true once the process is a zombie: its times are final and still readable.
fn is_over(pid: u32) -> Result<bool> {
    let Some(fields) = stat(pid) else { bail!("process {pid} is gone") };
    Ok(fields.first().is_some_and(|state| state == "Z"))
}

/// User and system time of a process that is not yet reaped.
///
/// `schedstat` counts nanoseconds of the first thread, `stat` ticks of all threads: the greater is the better figure.
fn cpu_time(pid: u32) -> Option<Duration> {
    let first_thread = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok();
    let nanoseconds =
        first_thread.as_deref().and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0);
    let fields = stat(pid)?;
    let ticks = |index: usize| fields.get(index)?.parse::<u32>().ok();
    let all_threads = TICK * (ticks(11)? + ticks(12)?);
    Some(all_threads.max(Duration::from_nanos(nanoseconds)))
}

/// Fields of `/proc/PID/stat` from the third (state) on; the second, a name, may hold anything.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_string).collect())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (Finished, Vec<(String, Duration)>) {
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        let finished =
            measure(command.args(["-c", script]), limit, &mut |line, cpu| lines.push((line.into(), cpu)))
                .unwrap();
        (finished, lines)
    }

    #[test]
    fn a_sleeping_process_uses_no_cpu_and_a_busy_one_does() {
        let minute = Duration::from_secs(60);
        let (asleep, _) = shell("sleep 0.2; exit 3", minute);
        assert!(asleep.cpu < Duration::from_millis(150), "{:?}", asleep.cpu);
        assert!(matches!(asleep.end, End::Exit(status) if status.code() == Some(3)));
        let busy = "echo one; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo two; echo bad >&2";
        let (busy, lines) = shell(busy, minute);
        let texts: Vec<_> = lines.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!((texts, busy.stderr.as_str()), (vec!["one", "two"], "bad\n"));
        assert!(lines[0].1 < lines[1].1 && lines[1].1 <= busy.cpu && busy.cpu > Duration::from_millis(5));
    }

    #[test]
    fn a_process_past_its_limit_is_stopped() {
        let (finished, _) = shell("exec sleep 60", Duration::from_millis(100));
        assert!(matches!(finished.end, End::TimedOut));
    }
}
