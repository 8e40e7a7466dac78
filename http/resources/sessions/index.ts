/** The bridge, its sessions, and the stateless questions (protocol §2). */
export { sessionResource } from "./session-resource.ts"
export { answerPath, answerView, sessionPath, sessionView } from "./session-views.ts"
