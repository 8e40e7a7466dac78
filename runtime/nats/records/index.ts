/** Record tables in a JetStream key-value bucket, and each node's view of them. */
export { recordOf, recordsKv } from "./record-keys.ts"
export { natsRecords, natsRecordsWith } from "./records.ts"
