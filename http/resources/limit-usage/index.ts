/** Who uses most of the rate limits and quotas, for admins (protocol §7). */
export { limitUsageResource, quotaSchema } from "./limit-usage-resource.ts"
export { accountQuotaElement, accountUsageTable } from "./limit-usage-views.ts"
