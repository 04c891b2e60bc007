/** Saves files from the page. */

export async function saveBlob(blob: Blob, name: string): Promise<void> {
  const address = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // The browser reads the blob after the click and does not report the end. The address is therefore released a minute later.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}

interface FilePicker {
  showSaveFilePicker?(options: { suggestedName: string }): Promise<FileSystemFileHandle>
}

/** Asks where to save a large file. Browsers allow this dialog only during a click. Null when the user cancels the dialog. */
export async function chooseFile(
  name: string,
): Promise<((bytes: ReadableStream<Uint8Array>, signal: AbortSignal) => Promise<void>) | null> {
  const { showSaveFilePicker } = window as FilePicker
  try {
    if (showSaveFilePicker) {
      const file = await showSaveFilePicker.call(window, { suggestedName: name })
      const target = await file.createWritable()
      return (bytes, signal) => bytes.pipeTo(target, { signal })
    }
  } catch (error) {
    // The dialog fails in a frame of another site. The file is then saved as a blob.
    if ((error as Error).name === 'AbortError') return null
  }
  return async (bytes, signal) => {
    const blob = await new Response(bytes).blob()
    signal.throwIfAborted()
    await saveBlob(blob, name)
  }
}
