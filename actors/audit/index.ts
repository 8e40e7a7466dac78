/** The audit log: who did what, from where and when, in a chain of hashes (protocol §7). */
export { audit, type AuditDependencies, auditId, auditKind } from "./actor.ts"
export { ChainCheck, type ChainFault, decodeEntry, entryHash } from "./chain.ts"
export { AuditMessage, AuditOperation, AuditOutcome, type AuditReply, AuditState,
  type ChainPoint } from "./protocol.ts"
