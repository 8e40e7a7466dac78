/** Blocks of depositors, and reports of notifications (protocol §7). */
export { blockElement } from "./block-views.ts"
export { moderationResource } from "./moderation-resource.ts"
export { countReports } from "./report-handlers.ts"
