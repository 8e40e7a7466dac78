/** Blocks of depositors, and reports of notifications (protocol §7). */
export { moderationResource } from "./moderation-resource.ts"
