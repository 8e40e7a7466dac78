/** A record of what passes through a node: its messages, and what its commits store. */
export { observedStorageLayer, type OnCommit } from "./observed-storage.ts"
export { type MessageTexts, type RecordedCommit, type RecordedMessage, type RecordedOutcome,
  type RecordedState, Recorder } from "./recorder.ts"
