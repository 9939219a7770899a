//! The responses to what the gate refuses.

use crate::app::endpoint::{ApiError, Code};
use petstore_base::metrics::Metrics;
use petstore_gate::{Refusal, RefusalReason, Refuse};

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.reason {
            RefusalReason::BadRequest => Code::BadRequest,
            RefusalReason::RequestTimeout => Code::RequestTimeout,
            RefusalReason::ContentTooLarge => Code::ContentTooLarge,
            RefusalReason::UriTooLong => Code::UriTooLong,
            RefusalReason::ExpectationFailed => Code::ExpectationFailed,
            RefusalReason::HeadersTooLarge => Code::HeadersTooLarge,
            RefusalReason::Failed => Code::Internal,
            RefusalReason::NotImplemented => Code::NotImplemented,
            RefusalReason::TransferCoding => Code::TransferCoding,
            RefusalReason::Overloaded => Code::Overloaded,
            RefusalReason::OutcomeUnknown => Code::OutcomeUnknown,
            RefusalReason::HttpVersion => Code::HttpVersion,
        };
        match refusal.message {
            Some(message) => Self::with_message(code, message),
            None => Self::new(code),
        }
    }
}

/// Makes the responses to what the gate refuses, and counts them. A failure of the service is no refusal.
pub fn refuse(metrics: Metrics) -> Refuse {
    Box::new(move |refusal| {
        let error = ApiError::from(refusal);
        if error.code != Code::Internal {
            metrics.refused(error.code.as_str(), 1);
        }
        error.into_response()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_code_of_its_own_with_the_same_status() {
        let mut codes = Vec::new();
        for reason in RefusalReason::ALL {
            let code = ApiError::from(Refusal::new(reason)).code;
            assert_eq!(code.status(), reason.status(), "{reason:?}");
            assert!(!codes.contains(&code), "{code:?} stands for two reasons");
            codes.push(code);
        }
    }
}
