/** The audit log as a resource (protocol §7). */
export { auditResource } from "./audit-resource.ts"
