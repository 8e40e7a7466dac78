/** The home page, the service document and fixed files (protocol §6). */
export { homeResource } from "./home-resource.ts"
