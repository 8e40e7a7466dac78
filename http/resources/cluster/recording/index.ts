/** What the answering node has recorded: messages, and actors after their commits. */
export { commitsElement, commitsSection } from "./commit-views.ts"
export { messagesView } from "./message-views.ts"
export { momentOf, nodeIn, type PastMoment, type RecordedCommits } from "./moments.ts"
export { pastBody, pastElement, pastLinks } from "./past-views.ts"
