/** Attempts that the service has recorded. */
export { type RecordedAttempt, recordedAttemptOf,
  type RecordedHeader } from "./recorded-exchange.ts"
