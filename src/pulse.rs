//! The writer's pulse: lets another worker ask whether the writer is there and could write.
//!
//! Nobody waits long: a question gets its answer within [`PATIENCE`], and while one has been waiting for
//! longer than that, a further question is answered with no at once.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a healthy writer may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shared by the writer, who answers, and all who ask.
#[derive(Default)]
pub struct Pulse {
    question: Mutex<Question>,
    answered: Condvar,
    wake_writer: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct Question {
    /// When the question was asked that still waits.
    waiting_since: Option<Instant>,
    /// Whether the last answer was that the store takes writes.
    healthy: bool,
}

impl Pulse {
    /// Says how to wake the writer; called once, when it has started.
    pub fn connect(&self, wake_writer: impl Fn() + Send + Sync + 'static) {
        let _ = self.wake_writer.set(Box::new(wake_writer));
    }

    /// Asks the writer, and waits a little.
    pub fn is_felt(&self) -> bool {
        let mut question = self.lock();
        let since = match question.waiting_since {
            Some(since) => since,
            None => {
                let now = Instant::now();
                question.waiting_since = Some(now);
                if let Some(wake) = self.wake_writer.get() {
                    wake();
                }
                now
            }
        };
        let patience = PATIENCE.saturating_sub(since.elapsed());
        let (question, wait) = self
            .answered
            .wait_timeout_while(question, patience, |question| question.waiting_since == Some(since))
            .unwrap_or_else(PoisonError::into_inner);
        !wait.timed_out() && question.healthy
    }

    /// The writer's side: where somebody asks, answers with what `probe` says.
    pub fn answer(&self, probe: impl FnOnce() -> bool) {
        if self.lock().waiting_since.is_none() {
            return;
        }
        // Not under the lock: a probe may take long, and those who ask have limited patience.
        let healthy = probe();
        *self.lock() = Question { waiting_since: None, healthy };
        self.answered.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Question> {
        self.question.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};

    #[test]
    fn writer_is_woken_and_its_answer_counts() {
        let pulse = Arc::new(Pulse::default());
        let (wake, woken) = mpsc::channel();
        pulse.connect(move || wake.send(()).unwrap());
        for healthy in [true, false] {
            let asker = Arc::clone(&pulse);
            let asked = std::thread::spawn(move || asker.is_felt());
            woken.recv().unwrap();
            pulse.answer(|| healthy);
            assert_eq!(asked.join().unwrap(), healthy);
        }
    }

    #[test]
    fn silent_writer_is_not_felt() {
        let pulse = Pulse::default();
        pulse.lock().waiting_since = Some(Instant::now() - PATIENCE);
        assert!(!pulse.is_felt());
    }

    #[test]
    fn unasked_writer_is_not_probed() {
        Pulse::default().answer(|| panic!("nobody asked"));
    }
}
