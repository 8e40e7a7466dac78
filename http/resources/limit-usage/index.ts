/** Who uses most of the rate limits and quotas, for admins (protocol §7). */
export { limitUsageResource } from "./limit-usage-resource.ts"
