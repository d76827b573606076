/* SPDX-License-Identifier: MIT */
/* Try.java - several threads of the Java virtual machine, with garbage collections beside them. */
public class Try {
	static native int quiesce();

	public static void main(String[] args) throws Exception {
		int[] bad = new int[1];
		Thread[] threads = new Thread[4];

		System.load(args[0]);
		for (int i = 0; i < threads.length; i++) {
			threads[i] = new Thread(() -> {
				synchronized (bad) { bad[0] |= quiesce(); }
			});
			threads[i].start();
			System.gc();
		}
		for (Thread thread : threads)
			thread.join();
		System.out.println("result " + bad[0]);
	}
}
