/** The operator's page: what needs attention, and where to look (protocol §6). */
export { administrationResource } from "./administration-resource.ts"
