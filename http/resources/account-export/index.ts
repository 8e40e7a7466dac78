/** The export of everything that an account owns (protocol §7). */
export { accountExportResource } from "./export-resource.ts"
