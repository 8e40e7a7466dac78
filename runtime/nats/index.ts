/** The NATS JetStream backend: every port, and what a node needs to start on it. */
export { natsBlobs } from "./blobs/index.ts"
export { connection, Nats, type NatsApi, type NatsOptions, NatsTooOld } from "./connection/index.ts"
export { assertWhole, beginRestore, hasContents, natsContents } from "./contents/index.ts"
export { natsRecords, natsRecordsWith } from "./records/index.ts"
export { natsRegistry } from "./registry/index.ts"
export { natsStorage } from "./storage/index.ts"
export { BucketsDiffer } from "./stream/index.ts"
export { assertSubjectPermission, hmacAuthenticator, natsPings,
  natsTransport } from "./transport/index.ts"
