/** The audit log, as handlers write it (protocol §7). */
export { auditActions, auditAddress, audited, type AuditedAction, auditedAsAdmin, auditedIfAllowed,
  auditedStream, beginAudited, recordAdminRefused, recordAudit } from "./audit.ts"
