/** Attempts to push, to verify and to relay, as their readers see them. */
export { attemptSchema, recordedHeaderSchema } from "./attempt-schemas.ts"
export { attemptElement, attemptList, attemptSummary, type AttemptTexts,
  shownAttempt } from "./attempt-views.ts"
