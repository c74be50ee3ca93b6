//! One job with each library, one after the other, so that other load on the machine affects all libraries.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{
    child::Limits,
    job::Job,
    memory,
    options::Options,
    program::{Library, Program},
    sample::{self, Call, Measurement, Sample},
};

/// One round of one job.
pub(super) struct Turns<'a> {
    pub(super) programs: &'a [Program],
    /// The number of earlier rounds.
    pub(super) round: usize,
    pub(super) call: Call<'a>,
    /// The same job with fewer objects, from which the memory is estimated.
    pub(super) smaller: Option<&'a Measurement>,
    pub(super) options: &'a Options,
}

impl Turns<'_> {
    /// Runs the job with each library.
    ///
    /// A library that does not offer the job, was not built or needs too much memory gets a reason instead of samples.
    ///
    /// # Errors
    ///
    /// Returns an error if a program fails, or if its result differs from those of the other programs.
    pub(super) fn take(&self, measurement: &mut Measurement, limits: Limits) -> Result<()> {
        for program in self.programs {
            if let Some(why) = self.obstacle(measurement.job, program, limits) {
                measurement.missing(program.library, &why);
            }
        }
        for turn in ORDERS[self.round % ORDERS.len()] {
            let program = &self.programs[turn];
            let (library, Ok(path)) = (program.library, program.path()) else { continue };
            if measurement.is_missing(library) {
                continue;
            }
            match self.sample(library, path, limits, measurement)? {
                Some(sample) => measurement.add(library, sample),
                None => measurement.missing(library, "too little memory: ended before the machine ran out"),
            }
        }
        if self.options.allocations && self.round + 1 == self.options.repetitions {
            self.count_allocations(measurement, limits)?;
        }
        Ok(())
    }

    /// Returns the reason if a library cannot be measured.
    fn obstacle(&self, job: Job, program: &Program, limits: Limits) -> Option<String> {
        let library = program.library;
        if !job.is_offered_by(library) {
            return Some("not offered".to_owned());
        }
        if let Err(why) = program.path() {
            return Some(why.to_owned());
        }
        let smaller = self.smaller?;
        match smaller.samples_of(library) {
            Some(samples) => memory::too_little((smaller.size, samples), self.call.size, (limits.available)()),
            None => Some(format!("not even {} objects were possible", smaller.size)),
        }
    }

    /// Runs a program once. Returns `None` if there was too little memory.
    fn sample(
        &self,
        library: Library,
        program: &Path,
        limits: Limits,
        measurement: &mut Measurement,
    ) -> Result<Option<Sample>> {
        let name = library.name();
        let slow = self.options.slow_klient.filter(|_| library == Library::Klient);
        let call = Call { slow, ..self.call };
        let Some(line) = sample::measure(program, &call, limits).context(name)? else { return Ok(None) };
        let sample = Sample::read(&line, call.count).context(name)?;
        let job = measurement.job;
        let right = measurement.answer.get_or_insert_with(|| sample.answer.clone());
        ensure!(sample.answer == *right, "{name} {}: {}, not {right}", job.name, sample.answer);
        let objects = job.objects(&call);
        ensure!(sample.objects() == Some(objects), "{name} {}: expected a result with {objects} objects", job.name);
        Ok(Some(sample))
    }

    /// Runs the job once with the programs that count allocations. Their times are not used.
    fn count_allocations(&self, measurement: &mut Measurement, limits: Limits) -> Result<()> {
        for program in self.programs {
            let (library, Some(path)) = (program.library, program.counting()) else { continue };
            if measurement.samples_of(library).is_none() {
                continue;
            }
            let sample = self.sample(library, path, limits, measurement)?;
            measurement.counted.extend(sample.map(|sample| (library, sample)));
        }
        Ok(())
    }
}

/// The orders of the libraries by round. Each library runs before each other one equally often.
const ORDERS: [[usize; Library::ALL.len()]; 6] = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1]];

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, process::Command};

    use klient_harness::Folder;

    use super::*;

    const LINE: &str = r#"{"wall_seconds": 1.0, "cpu_seconds": 0.5, "peak_rss_bytes": 2000000000, "answer": "1:aa"}"#;

    fn script(folder: &Folder, name: &str, text: &str) -> PathBuf {
        let path = folder.path().join(name);
        // Another process writes the script. If this process wrote it, a child started meanwhile could inherit the open file,
        // and the script could not be executed.
        let write = r#"printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod +x "$1""#;
        let status = Command::new("sh").args(["-c", write, "sh"]).arg(&path).arg(text).status().unwrap();
        assert!(status.success());
        path
    }

    /// Runs the job with three programs: each is a shell script, or the reason that its build failed.
    fn run(
        programs: [Result<&str, &str>; 3],
        smaller: Option<&Measurement>,
        size: usize,
        limits: Limits,
    ) -> Result<Measurement> {
        let folder = Folder::new().unwrap();
        let programs: Vec<_> = Library::ALL
            .into_iter()
            .zip(programs)
            .map(|(library, text)| {
                let built = text.map(|text| script(&folder, library.name(), text)).map_err(str::to_owned);
                Program::of(library, built)
            })
            .collect();
        let options = Options { repetitions: 2, ..Options::default() };
        let call = Call { job: "get", size, ..Call::default() };
        let mut measurement = Measurement::new(Job::ALL[0], 1, size);
        for round in 0..2 {
            Turns { programs: &programs, round, call, smaller, options: &options }.take(&mut measurement, limits)?;
        }
        Ok(measurement)
    }

    fn print(line: &str) -> String {
        format!("echo '{line}'")
    }

    #[test]
    fn a_peer_that_cannot_be_built_has_a_reason_and_no_numbers() {
        let works = print(LINE);
        let measured = run([Ok(&works), Err("no Go here"), Ok(&works)], None, 1, Limits::of_time_alone()).unwrap();
        assert_eq!(measured.samples[1].1.as_ref().unwrap_err(), "no Go here");
        assert_eq!(measured.samples_of(Library::Klient).unwrap().len(), 2);
        assert_eq!(measured.samples_of(Library::KubeRs).unwrap().len(), 2);
    }

    #[test]
    fn everybody_is_before_and_after_everybody_else_as_often() {
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            let place = |order: &[usize; 3], of| order.iter().position(|turn| *turn == of).unwrap();
            assert_eq!(ORDERS.iter().filter(|order| place(order, one) < place(order, other)).count(), 3);
        }
    }

    #[test]
    fn another_answer_ends_it_all() {
        let (works, differs) = (print(LINE), print(&LINE.replace("1:aa", "1:bb")));
        let error = run([Ok(&works), Ok(&differs), Ok(&works)], None, 1, Limits::of_time_alone()).err().unwrap();
        assert!(error.to_string().contains("client-go get: 1:bb, not 1:aa"), "{error:#}");
    }

    #[test]
    fn a_program_that_fails_ends_it_all_with_what_it_said() {
        let works = print(LINE);
        let fails = "echo 'connection refused' >&2; exit 1";
        let error = run([Ok(&works), Ok(fails), Ok(&works)], None, 1, Limits::of_time_alone()).err().unwrap();
        let error = format!("{error:#}");
        assert!(error.starts_with("client-go: ") && error.contains("connection refused"), "{error}");
    }

    #[test]
    fn too_large_size_is_left_out_for_that_library_alone() {
        let large = print(LINE);
        let small = print(&LINE.replace("2000000000", "20000000"));
        let limits = Limits { available: || Some(16_000_000_000), ..Limits::default() };
        let first = run([Ok(&small), Ok(&small), Ok(&large)], None, 20_000, limits).unwrap();
        // The third program would fail if it were run.
        let second = run([Ok(&small), Ok(&small), Ok("exit 1")], Some(&first), 200_000, limits).unwrap();
        assert!(second.samples[2].1.as_ref().unwrap_err().contains("about 20.0 GB needed"));
        assert_eq!(second.samples_of(Library::Klient).unwrap().len(), 2);
        let third = run([Ok(&small), Ok(&small), Ok("exit 1")], Some(&second), 200_000, limits).unwrap();
        assert!(third.samples[2].1.as_ref().unwrap_err().contains("not even 200000 objects"));
    }

    #[test]
    fn a_program_that_takes_all_memory_has_no_numbers_at_all() {
        let limits = Limits { available: || Some(0), ..Limits::default() };
        let waits = "exec sleep 1000";
        let measured = run([Ok(waits), Ok(waits), Ok(waits)], None, 1, limits).unwrap();
        assert!(measured.samples.iter().all(|(_, samples)| samples.as_ref().is_err_and(|why| why.contains("memory"))));
    }
}
