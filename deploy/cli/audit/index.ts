/** The commands of the audit log. */
export { auditCommand } from "./audit.ts"
