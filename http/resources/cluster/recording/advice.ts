/** What an admin reads where nothing is recorded. */
export const recordingAdvice =
  "This node records neither messages nor commits: set INSPECTOR=on and start it again."
