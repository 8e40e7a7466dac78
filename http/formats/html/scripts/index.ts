/** The scripts of pages, and the service worker. Every page also works without them. */
export { chartsScript, chartsScriptPath } from "./charts.ts"
export { chipsScript, chipsScriptPath } from "./chips.ts"
export { listScript, listScriptPath } from "./list.ts"
export { liveScript, liveScriptPath } from "./live.ts"
export { notifyScript, notifyScriptPath } from "./notify.ts"
export { pageScript } from "./page.ts"
export { searchScript, searchScriptPath } from "./search.ts"
export { iconPath, serviceWorker } from "./service-worker.ts"
