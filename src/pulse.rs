//! The writer's pulse: lets another worker ask whether the writer is there and could write.
//!
//! Nobody waits long: a question gets its answer within [`PATIENCE`], and while one has been waiting for
//! longer than that, a further question is answered with no at once. Nor is the writer asked often: a yes
//! holds for [`FRESH`], so that a flood of questions costs it nothing.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a healthy writer may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a yes holds.
const FRESH: Duration = Duration::from_millis(100);

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
    /// When the writer last said that the store takes writes; `None` where it has said otherwise since.
    healthy_at: Option<Instant>,
}

impl Pulse {
    /// Says how to wake the writer; called once, when it has started.
    pub fn connect(&self, wake_writer: impl Fn() + Send + Sync + 'static) {
        let _ = self.wake_writer.set(Box::new(wake_writer));
    }

    /// Asks the writer, and waits a little.
    pub fn is_felt(&self) -> bool {
        let mut question = self.lock();
        if question.healthy_at.is_some_and(|at| at.elapsed() < FRESH) {
            return true;
        }
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
        !wait.timed_out() && question.healthy_at.is_some()
    }

    /// A batch failed, so an earlier yes holds no longer.
    pub fn doubt(&self) {
        self.lock().healthy_at = None;
    }

    /// The writer's side: where somebody asks, answers with what `probe` says.
    pub fn answer(&self, probe: impl FnOnce() -> bool) {
        if self.lock().waiting_since.is_none() {
            return;
        }
        // Not under the lock: a probe may take long, and those who ask have limited patience.
        let healthy = probe();
        *self.lock() = Question { waiting_since: None, healthy_at: healthy.then(Instant::now) };
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
        for before in [None, Some(Instant::now() - FRESH)] {
            for healthy in [true, false] {
                pulse.lock().healthy_at = before;
                let asker = Arc::clone(&pulse);
                let asked = std::thread::spawn(move || asker.is_felt());
                woken.recv().unwrap();
                pulse.answer(|| healthy);
                assert_eq!(asked.join().unwrap(), healthy);
            }
        }
    }

    #[test]
    fn yes_holds_a_while_unless_there_is_doubt() {
        let pulse = Pulse::default();
        let (wake, woken) = mpsc::channel();
        pulse.connect(move || wake.send(()).unwrap());
        pulse.lock().healthy_at = Some(Instant::now() + FRESH);
        assert!(pulse.is_felt());
        assert!(woken.try_recv().is_err(), "asked although the answer is fresh");
        pulse.doubt();
        assert_eq!(pulse.lock().healthy_at, None);
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
