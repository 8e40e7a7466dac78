/** What logs keep of attempts, for whoever has to find out why they fail. */
export { attemptDecoder, attemptFields, AttemptRecord, encodeAttempt, excessAttempts, nextAttempt,
  withoutSecret, withoutText } from "./attempt-record.ts"
